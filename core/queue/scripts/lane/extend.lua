-- KEYS    of the lane
-- ARGV    lease in ms, then ids of leased jobs
-- returns how many leases now last at least that long
-- keeps   a lease is never shortened
local ids, extended = arguments_from(2), 0
load_records(ids)
for _, id in ipairs(ids) do
  local record = records[id]
  if record and record[R_STATE] == S_LEASED then
    set_lease(id, record, math.max(record[R_UNTIL], now + ARGV[1]))
    extended = extended + 1
  end
end
flush()
return extended
