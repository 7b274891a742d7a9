-- KEYS    of the lane
-- ARGV    per job: id, token, number of events, kind and data of each
-- returns per job: 1 done, 0 the token does not hold the job and nothing changed
-- keeps   a done job's record stays (forget.lua removes it) and remembers the token that ended it: the same
--         attempt may repeat its finish, no other attempt can
local ids, answer, progress_names = {}, {}, {}
local at = 1
while at <= #ARGV do
  ids[#ids + 1] = ARGV[at]
  at = skip_events(at + 2)
end
load_records(ids)
at = 1
while at <= #ARGV do
  local id, token = ARGV[at], ARGV[at + 1]
  local record = records[id]
  if owned(record, token) then
    append_events(id, at + 2)
    leave_lease(id, record, S_DONE)
    record[R_TOKEN], record[R_PAYLOAD] = token, ''
    count(record[R_SWEEP], 'done', 1)
    progress_names[#progress_names + 1] = PROGRESS .. id
    answer[#answer + 1] = 1
  else
    local repeated = record and record[R_STATE] == S_DONE and record[R_TOKEN] == token
    answer[#answer + 1] = repeated and 1 or 0
  end
  at = skip_events(at + 2)
end
if #progress_names > 0 then redis.call('DEL', unpack(progress_names)) end
flush()
return answer
