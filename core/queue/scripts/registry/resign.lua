-- KEYS    leader lock
-- ARGV    coordinator, epoch
-- returns 1 resigned, 0 it did not lead
-- keeps   nobody ends another's lead
local holder = redis.call('HMGET', KEYS[1], 'coordinator', 'epoch')
if holder[1] ~= ARGV[1] or holder[2] ~= ARGV[2] then return 0 end
return redis.call('DEL', KEYS[1])
