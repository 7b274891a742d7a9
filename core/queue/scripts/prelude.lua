-- Stands before every script of scripts/lane. It names the keys, lays out the record, and holds what the
-- transitions share. A script loads the records it needs, changes them, and calls flush() once at its end.
--
-- Invariants that every script keeps:
--   a record is the truth; ready lists, DELAYED, LEASED, DEAD, ACTIVE and COUNTS follow it in the same script;
--   a job is in exactly one of: its sweep's ready list, DELAYED, LEASED, DEAD, or none (done);
--   ACTIVE holds exactly the sweeps with a ready job that are neither paused nor cancelled.
local SWEEPS, ACTIVE, FLAGS, COUNTS, STATE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local DELAYED, LEASED, DEAD, UNBURIED = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local EVENTS, BELL = KEYS[10], KEYS[11]
local JOB, PROGRESS, READY = KEYS[12], KEYS[13], KEYS[14]  -- prefixes

-- The record: a msgpack array. A job that never ran has the first four fields only.
local R_STATE, R_SWEEP, R_PAYLOAD, R_ENQUEUED = 1, 2, 3, 4
local R_CRASHES, R_INFRA, R_PROVIDER, R_OOM = 5, 6, 7, 8
local R_TOKEN = 9      -- of the attempt that holds it (leased) or ended it (done)
local R_UNTIL = 10     -- Redis's milliseconds: end of the lease, end of the delay, or time of death
local R_WORKER = 11    -- who holds or last held it
local R_DIGEST = 12    -- of the attempt's last commit: repeating it changes nothing
local R_ERROR = 13     -- of a dead job
local S_READY, S_DELAYED, S_LEASED, S_DONE, S_DEAD = 'r', 'd', 'l', 'f', 'x'

local BELL_LIMIT = 64  -- that many sleepers are woken at once; the rest are woken by those

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local records, dirty = {}, {}
local counts, ready_front, ready_back, expiries = {}, {}, {}, {}
local unleased = {}

-- Fills `records` for a list of job ids; a job without a record gets false.
local function load_records(ids)
  if #ids == 0 then return end
  local names = {}
  for i, id in ipairs(ids) do names[i] = JOB .. id end
  local raw = redis.call('MGET', unpack(names))
  for i, id in ipairs(ids) do records[id] = raw[i] and cmsgpack.unpack(raw[i]) end
end

local function owned(record, token)
  return record and record[R_STATE] == S_LEASED and record[R_TOKEN] == token
end

local function save(id) dirty[id] = true end

local function count(sweep, what, change)
  local field = sweep .. ':' .. what
  counts[field] = (counts[field] or 0) + change
end

local function fill(record)
  for i = R_CRASHES, R_OOM do record[i] = record[i] or 0 end
  for i = R_TOKEN, R_DIGEST do record[i] = record[i] or (i == R_UNTIL and 0 or '') end
end

-- A leased job leaves its lease for `state`; the caller adds it to that state's index.
local function leave_lease(id, record, state)
  fill(record)
  record[R_STATE] = state
  record[R_TOKEN], record[R_DIGEST] = '', ''
  unleased[#unleased + 1] = id
  count(record[R_SWEEP], 'leased', -1)
  save(id)
end

local function make_ready(id, record, at_front)
  record[R_STATE] = S_READY
  local side = at_front and ready_front or ready_back
  local sweep = record[R_SWEEP]
  side[sweep] = side[sweep] or {}
  table.insert(side[sweep], id)
  save(id)
end

local function die(id, record, reason)
  leave_lease(id, record, S_DEAD)
  record[R_UNTIL], record[R_ERROR] = now, reason
  redis.call('ZADD', DEAD, now, id)
  count(record[R_SWEEP], 'dead', 1)
end

-- A lease ended without a word from its worker. Jobs under way go to the front: they are closest to done.
local function take_back(id, record, crash_limit)
  fill(record)
  record[R_CRASHES] = record[R_CRASHES] + 1
  if record[R_CRASHES] > crash_limit then
    die(id, record, 'its worker died or fell silent ' .. record[R_CRASHES] .. ' times while holding it; last: ' ..
        record[R_WORKER])
    redis.call('SADD', UNBURIED, id)
    return 0
  end
  leave_lease(id, record, S_READY)
  make_ready(id, record, true)
  return 1
end

-- Leases of a batch end together, and Redis's own printing of a score is slow: it is printed once.
local printed_deadline, deadline_text
local function set_lease(id, record, deadline)
  if deadline ~= printed_deadline then
    printed_deadline, deadline_text = deadline, string.format('%.0f', deadline)
  end
  record[R_UNTIL] = deadline
  expiries[#expiries + 1] = deadline_text
  expiries[#expiries + 1] = id
  save(id)
end

-- Rings for up to `jobs` sleepers, unless the lane is parked.
local function ring(jobs)
  if redis.call('HEXISTS', STATE, 'parked') == 1 then return end
  local room = math.min(jobs, BELL_LIMIT) - redis.call('LLEN', BELL)
  local rings = {}
  for i = 1, room do rings[i] = '' end
  if room > 0 then redis.call('RPUSH', BELL, unpack(rings)) end
end

-- A sweep with ready jobs takes part in claims, from the lane's present pass on: waiting earns no credit.
local function activate(sweep, jobs)
  local flags = redis.call('HMGET', FLAGS, 'p:' .. sweep, 'c:' .. sweep)
  if flags[1] or flags[2] then return end
  redis.call('ZADD', ACTIVE, 'NX', redis.call('HGET', STATE, 'pass') or 0, sweep)
  ring(jobs)
end

-- ARGV from `at`: a number of events, then kind and data of each. Returns the place behind them.
local function skip_events(at) return at + 1 + 2 * tonumber(ARGV[at]) end
local function append_events(id, at)
  for i = at + 1, skip_events(at) - 1, 2 do
    redis.call('XADD', EVENTS, '*', 'j', id, 'k', ARGV[i], 'd', ARGV[i + 1])
  end
end

local function arguments_from(first)
  local list = {}
  for i = first, #ARGV do list[#list + 1] = ARGV[i] end
  return list
end

local function push_ready(side, command)
  for sweep, ids in pairs(side) do
    redis.call(command, READY .. sweep, unpack(ids))
    activate(sweep, #ids)
  end
end

-- Writes what the script changed.
local function flush()
  local pairs_to_set = {}
  for id in pairs(dirty) do
    pairs_to_set[#pairs_to_set + 1] = JOB .. id
    pairs_to_set[#pairs_to_set + 1] = cmsgpack.pack(records[id])
  end
  if #pairs_to_set > 0 then redis.call('MSET', unpack(pairs_to_set)) end
  if #unleased > 0 then redis.call('ZREM', LEASED, unpack(unleased)) end
  if #expiries > 0 then redis.call('ZADD', LEASED, unpack(expiries)) end
  for field, change in pairs(counts) do
    if change ~= 0 then redis.call('HINCRBY', COUNTS, field, change) end
  end
  push_ready(ready_front, 'LPUSH')
  push_ready(ready_back, 'RPUSH')
end

