-- Raises the fence to one that nobody had: the time, or more than the last one, and at least `least`.
local now, other = time[1] .. string.sub('00000' .. time[2], -6), math.max((fence or 0) + 1, least)
fence = tonumber(now) < other and string.format('%.0f', other) or now
