-- KEYS    of the lane
-- ARGV    none
-- returns per sweep: name, ready, delayed, leased, done, dead, age in ms of the job at the front, paused,
--         cancelled, lane parked, why (a flat list)
-- keeps   reads only, a fixed number of commands per sweep
local answer = {}
local parked = redis.call('HGET', STATE, 'parked') or ''
local is_parked = redis.call('HEXISTS', STATE, 'parked')
for _, sweep in ipairs(redis.call('HKEYS', SWEEPS)) do
  local kept = redis.call('HMGET', COUNTS, sweep .. ':delayed', sweep .. ':leased', sweep .. ':done',
                          sweep .. ':dead')
  local flags = redis.call('HMGET', FLAGS, 'p:' .. sweep, 'c:' .. sweep)
  local age, front = 0, redis.call('LINDEX', READY .. sweep, 0)
  if front then
    load_records({front})
    if records[front] then age = now - records[front][R_ENQUEUED] end
  end
  for _, value in ipairs({sweep, redis.call('LLEN', READY .. sweep), tonumber(kept[1] or 0),
                          tonumber(kept[2] or 0), tonumber(kept[3] or 0), tonumber(kept[4] or 0), age,
                          flags[1] and 1 or 0, flags[2] and 1 or 0, is_parked, parked}) do
    answer[#answer + 1] = value
  end
end
return answer
