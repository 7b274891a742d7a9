-- KEYS    of the lane
-- ARGV    most jobs, random bits, worker, lease in ms
-- returns per job: id, sweep, payload, progress, crashes, infra failures, provider failures (a flat list)
-- keeps   the token of the n-th job returned is "BITS.n", one of its own for every attempt;
--         no job leaves a ready list without a lease; parked lanes and paused or cancelled sweeps give nothing.
--         Sweeps share by stride scheduling: each job taken moves its sweep's pass on by 1 / priority, and the
--         sweep with the lowest pass is next, so each gets its weight and none starves. When it leaves, the
--         bell rings if and only if there is still something to claim.
local CANDIDATES = 64  -- sweeps looked at in one claim, those furthest behind first
local want, bits, worker = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local deadline = now + ARGV[4]
if redis.call('HEXISTS', STATE, 'parked') == 1 then
  redis.call('DEL', BELL)
  return {}
end

local shares = {}
local active = redis.call('ZRANGE', ACTIVE, 0, CANDIDATES - 1, 'WITHSCORES')
for i = 1, #active, 2 do
  local sweep = active[i]
  shares[#shares + 1] = {sweep = sweep, pass = tonumber(active[i + 1]), taken = 0,
                         step = 1 / tonumber(redis.call('HGET', SWEEPS, sweep) or 1),
                         left = redis.call('LLEN', READY .. sweep)}
end
while want > 0 do
  local next_share
  for _, share in ipairs(shares) do
    if share.left > 0 and (not next_share or share.pass < next_share.pass) then next_share = share end
  end
  if not next_share then break end
  local batch = #shares == 1 and math.min(want, next_share.left) or 1
  next_share.taken = next_share.taken + batch
  next_share.left = next_share.left - batch
  next_share.pass = next_share.pass + batch * next_share.step
  want = want - batch
end

-- The lane's pass, at which a sweep joins: the lowest that still has jobs, or the last one's.
local ids, pass, highest = {}, nil, nil
for _, share in ipairs(shares) do
  highest = math.max(highest or share.pass, share.pass)
  if share.left > 0 then pass = math.min(pass or share.pass, share.pass) end
  if share.taken > 0 then
    for _, id in ipairs(redis.call('LPOP', READY .. share.sweep, share.taken)) do ids[#ids + 1] = id end
  end
  if share.left == 0 then
    redis.call('ZREM', ACTIVE, share.sweep)
  elseif share.taken > 0 then
    redis.call('ZADD', ACTIVE, string.format('%.17g', share.pass), share.sweep)
  end
end
if highest then redis.call('HSET', STATE, 'pass', string.format('%.17g', pass or highest)) end

load_records(ids)
local taken, progress_names = {}, {}
for _, id in ipairs(ids) do
  local record = records[id]
  if record and record[R_STATE] == S_READY then  -- else the list held an id that its record does not confirm
    fill(record)
    record[R_STATE], record[R_TOKEN], record[R_WORKER] = S_LEASED, bits .. '.' .. #taken + 1, worker
    record[R_DIGEST] = ''
    set_lease(id, record, deadline)
    count(record[R_SWEEP], 'leased', 1)
    taken[#taken + 1] = id
    progress_names[#taken] = PROGRESS .. id
  end
end
local answer = {}
if #taken > 0 then
  local progress = redis.call('MGET', unpack(progress_names))
  for i, id in ipairs(taken) do
    local record = records[id]
    for _, value in ipairs({id, record[R_SWEEP], record[R_PAYLOAD], progress[i] or '', record[R_CRASHES],
                            record[R_INFRA], record[R_PROVIDER]}) do
      answer[#answer + 1] = value
    end
  end
end
flush()
if redis.call('EXISTS', ACTIVE) == 1 then ring(1) else redis.call('DEL', BELL) end
return answer
