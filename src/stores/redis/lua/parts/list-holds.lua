-- Calls `onHold` with the kind, the end and the names of each hold that is not over; in the queue, of the first ones. Needs
-- `text`, the record or false, and `nowMs`.
local function listHolds(onHold)
  for kind, sign, ends, names in string.gmatch(text or '', '\n(%a)(%+?)(%d+) ([^\n]+)') do
    ends = sign == '+' and ends + string.sub(text, 1, 13) or tonumber(ends)
    if ends > nowMs then onHold(kind, ends, string.match(names, '^(%S+) (%S+) (%S+)$')) end
  end
  if not text or string.byte(text, KIND_COLUMN) ~= SHARED_LINE then return end
  for _, range in ipairs({{'r', READERS_FROM}, {'R', CLAIMS_FROM}}) do
    local kind, from = unpack(range)
    local found = redis.call(
      'ZRANGE', KEYS[2], from + nowMs + 1, '(' .. from + READERS_FROM, 'BYSCORE', 'LIMIT', 0, LIST_LIMIT, 'WITHSCORES'
    )
    for i = 1, #found, 2 do
      onHold(kind, math.floor(found[i + 1]) - from, string.match(found[i], '^:h(%S+) (%S+) (%S+)$'))
    end
  end
end
