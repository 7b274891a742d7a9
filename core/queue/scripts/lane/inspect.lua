-- KEYS    of the lane
-- ARGV    ids
-- returns per job with a record: id, state, sweep, payload, progress, crashes, infra failures, provider failures,
--         out-of-memory failures, worker, until (ms), error (a flat list)
-- keeps   reads only
local answer = {}
load_records(ARGV)
for _, id in ipairs(ARGV) do
  local record = records[id]
  if record then
    fill(record)
    for _, value in ipairs({id, record[R_STATE], record[R_SWEEP], record[R_PAYLOAD],
                            redis.call('GET', PROGRESS .. id) or '', record[R_CRASHES], record[R_INFRA],
                            record[R_PROVIDER], record[R_OOM], record[R_WORKER], record[R_UNTIL],
                            record[R_ERROR] or ''}) do
      answer[#answer + 1] = value
    end
  end
end
return answer
