-- The buckets of one key. Each is stored as the time at which it will be full again (see rate-limiter.ts), in microseconds.
-- The time is that of Redis, so gateways with different clocks still share one limit.
-- i and j are the intervals of one request and one token by which they were computed: at another rate, what was taken
-- counts at the new one.
-- KEYS[1] hash {r, t, i, j} · ARGV: depth, cost and interval of requests, then of tokens, microseconds
-- Returns {allowed, debt of requests, debt of tokens}, whole microseconds.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = redis.call('HMGET', KEYS[1], 'r', 't', 'i', 'j')

local function debt(at, depth, before, interval)
  local ahead = (tonumber(at) or 0) - now
  if ahead < 0 then return 0 end
  before = tonumber(before) or interval
  if before ~= interval then ahead = ahead / before * interval end
  if ahead > depth then return depth end
  return ahead
end

local depth_r, cost_r, interval_r = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local depth_t, cost_t, interval_t = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local function keep(r, t)
  redis.call('HSET', KEYS[1], 'r', string.format('%.17g', now + r), 't', string.format('%.17g', now + t),
    'i', ARGV[3], 'j', ARGV[6])
  redis.call('PEXPIRE', KEYS[1], math.ceil(math.max(r, t) / 1000) + 1000)
end

local r, t = debt(full[1], depth_r, full[3], interval_r), debt(full[2], depth_t, full[4], interval_t)

-- Two microseconds of slack for rounding.
if (cost_r > 0 and r + cost_r > depth_r + 2) or (cost_t > 0 and t + cost_t > depth_t + 2) then
  -- Redis's clock was set back, or the policy became smaller. Store the debt of this decision, so that the key waits
  -- no longer than for an empty bucket.
  if (tonumber(full[1]) or 0) - now > depth_r or (tonumber(full[2]) or 0) - now > depth_t then keep(r, t) end
  return {0, math.ceil(r), math.ceil(t)}
end
r, t = r + cost_r, t + cost_t
keep(r, t)
return {1, math.ceil(r), math.ceil(t)}
