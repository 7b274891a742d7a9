-- KEYS    of the lane
-- ARGV    id and token of each lease
-- returns how many jobs were given back; leases that are lost are passed over
-- keeps   no budget is charged; the job is ready at once, at the front of its sweep
local ids, released = {}, 0
for i = 1, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
load_records(ids)
for i = 1, #ARGV, 2 do
  local id, record = ARGV[i], records[ARGV[i]]
  if owned(record, ARGV[i + 1]) then
    leave_lease(id, record, S_READY)
    make_ready(id, record, true)
    released = released + 1
  end
end
flush()
return released
