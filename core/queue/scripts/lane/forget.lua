-- KEYS    of the lane
-- ARGV    first stream id to keep or an empty text, then ids of finished jobs
-- returns how many records were removed
-- keeps   only records of done jobs go: a dead job stays until it is dropped or tried again, and a job that
--         runs is never removed by mistake
local ids, names = arguments_from(2), {}
load_records(ids)
for _, id in ipairs(ids) do
  local record = records[id]
  if record and record[R_STATE] == S_DONE then names[#names + 1] = JOB .. id end
end
if #names > 0 then redis.call('DEL', unpack(names)) end
if ARGV[1] ~= '' then redis.call('XTRIM', EVENTS, 'MINID', ARGV[1]) end
return #names
