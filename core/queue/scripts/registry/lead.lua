-- KEYS    leader lock, epoch counter
-- ARGV    coordinator, the epoch it led with or 0, endpoint of its broker, term in ms
-- returns the epoch it leads with, 0 if another coordinator leads
-- keeps   at most one leader; each new lead has an epoch that nobody had before, and only its holder renews it
local holder = redis.call('HMGET', KEYS[1], 'coordinator', 'epoch')
local epoch
if not holder[1] then
  epoch = redis.call('INCR', KEYS[2])
elseif holder[1] == ARGV[1] and holder[2] == ARGV[2] then
  epoch = tonumber(ARGV[2])
else
  return 0
end
redis.call('HSET', KEYS[1], 'coordinator', ARGV[1], 'epoch', epoch, 'endpoint', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return epoch
