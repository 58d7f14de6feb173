-- The buckets of one key. Each is stored as the time at which it will be full again (see rate-limiter.ts), in microseconds.
-- The time is that of Redis, so gateways with different clocks still share one limit.
-- KEYS[1] hash {r, t} · ARGV: depth and cost of requests, depth and cost of tokens, microseconds
-- Returns {allowed, debt of requests, debt of tokens}, whole microseconds.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = redis.call('HMGET', KEYS[1], 'r', 't')

local function debt(at, depth)
  local ahead = (tonumber(at) or 0) - now
  if ahead < 0 then return 0 end
  if ahead > depth then return depth end
  return ahead
end

local function keep(r, t)
  redis.call('HSET', KEYS[1], 'r', string.format('%.17g', now + r), 't', string.format('%.17g', now + t))
  redis.call('PEXPIRE', KEYS[1], math.ceil(math.max(r, t) / 1000) + 1000)
end

local depth_r, cost_r, depth_t, cost_t = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local r, t = debt(full[1], depth_r), debt(full[2], depth_t)

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
