-- Returns what the score of a reader's hold says: the end, whether it is a claim, and whether its fence rose.
local function readScore(score)
  local isClaim = tonumber(score) >= CLAIMS_FROM
  return math.floor(score) - (isClaim and CLAIMS_FROM or READERS_FROM), isClaim, score % 1 > 0
end

local function scoreOf(ends, isClaim, isRaised)
  return (isClaim and CLAIMS_FROM or READERS_FROM) + ends + (isRaised and 0.5 or 0)
end
