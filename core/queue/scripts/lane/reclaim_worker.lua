-- KEYS    of the lane
-- ARGV    worker, most crashes a job may have, then ids of leased jobs
-- returns number of jobs made ready, then the ids of dead jobs without an event yet
-- keeps   only leases of that worker end; each is charged as a crash
local ids = arguments_from(3)
load_records(ids)
local requeued = 0
for _, id in ipairs(ids) do
  local record = records[id]
  if record and record[R_STATE] == S_LEASED and record[R_WORKER] == ARGV[1] then
    requeued = requeued + take_back(id, record, tonumber(ARGV[2]))
  end
end
flush()
local answer = redis.call('SMEMBERS', UNBURIED)
table.insert(answer, 1, requeued)
return answer
