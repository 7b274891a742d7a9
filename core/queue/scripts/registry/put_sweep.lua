-- KEYS    the sweep
-- ARGV    hash, frozen specification
-- returns 1 stored or equal, 0 another specification has that name
-- keeps   a sweep's specification never changes
local stored = redis.call('HGET', KEYS[1], 'hash')
if stored then return stored == ARGV[1] and 1 or 0 end
redis.call('HSET', KEYS[1], 'hash', ARGV[1], 'frozen', ARGV[2])
return 1
