-- KEYS    of the lane
-- ARGV    id, kind and data of the event of death
-- returns 1 appended, 0 the job has its event already, -1 the job is not dead
-- keeps   one event of death per dead job
load_records({ARGV[1]})
local record = records[ARGV[1]]
if not record or record[R_STATE] ~= S_DEAD then return -1 end
if redis.call('SREM', UNBURIED, ARGV[1]) == 0 then return 0 end
redis.call('XADD', EVENTS, '*', 'j', ARGV[1], 'k', ARGV[2], 'd', ARGV[3])
return 1
