-- KEYS    of the lane
-- ARGV    sweep, priority (1..9), then id and payload of each job
-- returns how many jobs were added; the others had a record and were left alone
-- keeps   an id enters once, whatever state its record is in, done included
local sweep = ARGV[1]
local ids, payloads = {}, {}
for i = 3, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
  payloads[#payloads + 1] = ARGV[i + 1]
end
load_records(ids)
redis.call('HSET', SWEEPS, sweep, ARGV[2])
local added = 0
for i, id in ipairs(ids) do
  if not records[id] then
    records[id] = {S_READY, sweep, payloads[i], now}
    make_ready(id, records[id], false)
    added = added + 1
  end
end
flush()
return added
