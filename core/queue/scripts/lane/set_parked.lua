-- KEYS    of the lane
-- ARGV    1 to park or 0 to open, reason
-- returns 1
-- keeps   from this moment claims on a parked lane get nothing and its bell is silent
if ARGV[1] == '1' then
  redis.call('HSET', STATE, 'parked', ARGV[2])
  redis.call('DEL', BELL)
else
  redis.call('HDEL', STATE, 'parked')
  if redis.call('EXISTS', ACTIVE) == 1 then ring(BELL_LIMIT) end
end
return 1
