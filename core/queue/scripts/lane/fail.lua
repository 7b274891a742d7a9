-- KEYS    of the lane
-- ARGV    id, token, budget (crash, infra, provider, out_of_memory), its limit, first delay in ms, longest delay
--         in ms, jitter (0 <= x < 1), delay the peer asked for in ms or -1, error, kind and data of the event
--         of death
-- returns 0 will be tried again, 1 dead, -1 the token does not hold the job and nothing changed
-- keeps   each budget is counted alone; the event of death is appended exactly when the job dies. The delay has
--         full jitter: uniform from 0 to the doubled first delay; what the peer asked for is waited in full.
local BUDGETS = {crash = R_CRASHES, infra = R_INFRA, provider = R_PROVIDER, out_of_memory = R_OOM}
local id, budget, limit = ARGV[1], BUDGETS[ARGV[3]], tonumber(ARGV[4])
local first, longest, jitter, asked = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
load_records({id})
local record = records[id]
if not owned(record, ARGV[2]) then return -1 end
record[budget] = record[budget] + 1
if record[budget] > limit then
  die(id, record, ARGV[9])
  redis.call('XADD', EVENTS, '*', 'j', id, 'k', ARGV[10], 'd', ARGV[11])
  flush()
  return 1
end
local ceiling = math.min(longest, first * 2 ^ math.min(record[budget] - 1, 40))
if asked >= 0 then ceiling = first end
local due = now + math.max(asked, 0) + math.floor(ceiling * jitter)
leave_lease(id, record, S_DELAYED)
record[R_UNTIL] = due
redis.call('ZADD', DELAYED, due, id)
count(record[R_SWEEP], 'delayed', 1)
flush()
return 0
