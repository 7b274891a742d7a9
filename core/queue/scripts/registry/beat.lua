-- KEYS    the hash of workers or of profilers
-- ARGV    id, what it says of itself
-- returns 1
-- keeps   the time of the beat is Redis's: hosts' clocks may differ by hours. 16 digits of it stand before the
--         value, so that both change together
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%016d', now) .. ARGV[2])
return 1
