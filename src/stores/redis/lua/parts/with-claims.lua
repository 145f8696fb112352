-- Appends the open claims of the calling process to a reply, without the hold that the reply is about: those of this call, and
-- of the others in the queue those that lapse first.
local function withClaims(reply)
  local listed = {[names] = true}
  local function list(claimNames, ends)
    local process, id = string.match(claimNames, '^(%S+) %S+ (%S+)$')
    if process ~= caller or listed[claimNames] then return end
    listed[claimNames] = true
    reply[#reply + 1] = id
    reply[#reply + 1] = last
    reply[#reply + 1] = ends
  end
  for _, hold in ipairs(holds) do
    if hold.isClaim then list(hold.names, hold.ends) end
  end
  for _, hold in ipairs(granted) do list(hold.names, hold.ends) end
  if readers == 0 then return reply end
  for _, hold in ipairs(readersIn(CLAIMS_FROM, nil, CLAIMS_LIMIT)) do list(hold.names, hold.ends) end
  return reply
end
