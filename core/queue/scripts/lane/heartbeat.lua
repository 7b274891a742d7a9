-- KEYS    of the lane
-- ARGV    lease in ms, then id and token of each lease
-- returns per lease: 0 kept and renewed, 1 lost, 2 kept and renewed but its sweep is cancelled
-- keeps   only the token that holds a job renews it
local deadline = now + ARGV[1]
local ids, answer, cancelled = {}, {}, {}
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
load_records(ids)
for i = 2, #ARGV, 2 do
  local record = records[ARGV[i]]
  local state = 1
  if owned(record, ARGV[i + 1]) then
    set_lease(ARGV[i], record, deadline)
    local sweep = record[R_SWEEP]
    if cancelled[sweep] == nil then cancelled[sweep] = redis.call('HEXISTS', FLAGS, 'c:' .. sweep) == 1 end
    state = cancelled[sweep] and 2 or 0
  end
  answer[#answer + 1] = state
end
flush()
return answer
