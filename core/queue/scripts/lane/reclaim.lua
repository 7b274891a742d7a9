-- KEYS    of the lane
-- ARGV    most jobs of each sort, most crashes a job may have
-- returns number of jobs made ready from expired leases, then the ids of dead jobs without an event yet
-- keeps   an expired lease is charged as a crash, and beyond the limit the job is dead and in UNBURIED until
--         bury.lua; due delayed jobs become ready; index entries that their record does not confirm are mended
local most, crash_limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local expired = redis.call('ZRANGE', LEASED, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
local due = redis.call('ZRANGE', DELAYED, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
load_records(expired)
load_records(due)
local requeued = 0
for _, id in ipairs(expired) do
  local record = records[id]
  if not record or record[R_STATE] ~= S_LEASED then
    redis.call('ZREM', LEASED, id)
  elseif record[R_UNTIL] > now then
    redis.call('ZADD', LEASED, record[R_UNTIL], id)
  else
    requeued = requeued + take_back(id, record, crash_limit)
  end
end
for _, id in ipairs(due) do
  local record = records[id]
  redis.call('ZREM', DELAYED, id)
  if record and record[R_STATE] == S_DELAYED then
    count(record[R_SWEEP], 'delayed', -1)
    make_ready(id, record, true)
  end
end
flush()
if redis.call('EXISTS', ACTIVE) == 1 then ring(1) end  -- a ring may have been lost with a worker that took it
local answer = redis.call('SRANDMEMBER', UNBURIED, most)
table.insert(answer, 1, requeued)
return answer
