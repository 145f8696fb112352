-- Appends the open claims of the calling process to a reply, without the hold that the reply is about.
local function withClaims(reply)
  for _, hold in ipairs(holds) do
    if hold.isClaim and hold.names ~= names then
      local process, id = string.match(hold.names, '^(%S+) %S+ (%S+)$')
      if process == caller then
        reply[#reply + 1] = id
        reply[#reply + 1] = last
        reply[#reply + 1] = hold.ends
      end
    end
  end
  return reply
end
