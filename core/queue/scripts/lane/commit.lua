-- KEYS    of the lane
-- ARGV    lease in ms, then per step: id, token, digest, progress, number of events, kind and data of each
-- returns per step: 1 stored, 0 the token does not hold the job and nothing changed
-- keeps   progress, events and lease change together or not at all; a step whose digest is that of the job's
--         last step was stored before (its answer was lost) and only renews the lease
local deadline = now + ARGV[1]
local ids, answer = {}, {}
local at = 2
while at <= #ARGV do
  ids[#ids + 1] = ARGV[at]
  at = skip_events(at + 4)
end
load_records(ids)
at = 2
while at <= #ARGV do
  local id, digest = ARGV[at], ARGV[at + 2]
  local record = records[id]
  if owned(record, ARGV[at + 1]) then
    if record[R_DIGEST] ~= digest then
      redis.call('SET', PROGRESS .. id, ARGV[at + 3])
      append_events(id, at + 4)
      record[R_DIGEST] = digest
    end
    set_lease(id, record, deadline)
    answer[#answer + 1] = 1
  else
    answer[#answer + 1] = 0
  end
  at = skip_events(at + 4)
end
flush()
return answer
