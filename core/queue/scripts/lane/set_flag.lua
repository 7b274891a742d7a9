-- KEYS    of the lane
-- ARGV    sweep, flag (p paused, c cancelled), 1 to set or 0 to clear
-- returns 1
-- keeps   from this moment no claim takes a job of a flagged sweep; when its last flag goes, it takes part again
local sweep = ARGV[1]
if ARGV[3] == '1' then
  redis.call('HSET', FLAGS, ARGV[2] .. ':' .. sweep, 1)
  redis.call('ZREM', ACTIVE, sweep)
else
  redis.call('HDEL', FLAGS, ARGV[2] .. ':' .. sweep)
  local ready = redis.call('LLEN', READY .. sweep)
  if ready > 0 then activate(sweep, ready) end
end
return 1
