import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { RedisClient } from '#store';
import {
  bucketsOf,
  costMs,
  BucketDecision,
  type Buckets,
  type RateAmount,
  type RateDecision,
  type RateLimiter,
  type RatePolicy,
  createLocalLimiter,
} from './rate-limiter.ts';

const SCRIPT = readFileSync(fileURLToPath(new URL('./take.lua', import.meta.url)), 'utf8');
const SCRIPT_SHA = hash('sha1', SCRIPT);
const PREFIX = 'tollgate:rate:';

/** How often a failed Redis is tried again. */
const PROBE_EVERY_MS = 250;

interface RateLimiterOptions {
  /** null: limit in this process alone. */
  readonly redis: RedisClient | null;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  readonly timeoutMs?: number;
  /** Called when limits become local because Redis failed, and when they are shared again. */
  readonly onChange?: (shared: boolean, error: unknown) => void;
}

/**
 * Limits that all gateways share through Redis. Without Redis, or while it fails, each process limits alone.
 *
 * Calls that pass are also counted in this process, for two reasons. If Redis fails, the local limits continue from the
 * current state and not with full buckets. If Redis loses its data, the calls of this process stay counted. The first
 * failure switches to local limits at once. From then on Redis is probed in the background, so no request waits for it.
 */
export function createRateLimiter({
  redis,
  now,
  timeoutMs = 50,
  onChange = () => {},
}: RateLimiterOptions): RateLimiter {
  const local = createLocalLimiter({ now });
  if (redis === null) return local;

  let shared = true;
  let probing = false;
  let probedAt = 0;

  const failed = (error: unknown) => {
    probedAt = now();
    if (!shared) return;
    shared = false;
    onChange(false, error);
  };

  /**
   * Probes with the real script and a separate key, because a Redis that answers but cannot write (read only, out of
   * memory) is useless here.
   */
  const probe = async (policy: RatePolicy) => {
    probing = true;
    probedAt = now();
    try {
      await within(timeoutMs, runScript(redis, `${PREFIX}probe`, bucketsOf(policy), NOTHING));
      shared = true;
      onChange(true, null);
    } catch {
      probedAt = now();
    } finally {
      probing = false;
    }
  };

  const takeShared = async (key: string, policy: RatePolicy, amount: RateAmount): Promise<RateDecision> => {
    const buckets = bucketsOf(policy);
    let reply: SharedReply;
    try {
      reply = await within(timeoutMs, runScript(redis, PREFIX + key, buckets, amount));
    } catch (error) {
      failed(error);
      return local.take(key, policy, amount);
    }
    if (reply.allowed) local.take(key, policy, amount);
    return new BucketDecision(buckets, reply.requestsMs, reply.tokensMs, amount, reply.allowed);
  };

  return {
    take(key, policy, amount) {
      if (!shared) {
        const sinceMs = now() - probedAt;
        if (!probing && sinceMs >= PROBE_EVERY_MS) void probe(policy);
        return local.take(key, policy, amount);
      }
      // If this process alone has used up the limit, Redis need not be asked.
      const own = local.check(key, policy, amount);
      return own.allowed ? takeShared(key, policy, amount) : own;
    },
  };
}

const NOTHING: RateAmount = { requests: 0, tokens: 0 };

interface SharedReply {
  readonly allowed: boolean;
  readonly requestsMs: number;
  readonly tokensMs: number;
}

async function runScript(
  redis: RedisClient,
  key: string,
  { requests, tokens }: Buckets,
  amount: RateAmount,
): Promise<SharedReply> {
  const args = [
    key,
    requests.depthMs * 1_000,
    costMs(requests, amount.requests) * 1_000,
    requests.intervalMs * 1_000,
    tokens.depthMs * 1_000,
    costMs(tokens, amount.tokens) * 1_000,
    tokens.intervalMs * 1_000,
  ];
  let reply: unknown;
  try {
    reply = await redis.evalsha(SCRIPT_SHA, 1, ...args);
  } catch (error) {
    // The script is not loaded yet on this server, or the server was restarted.
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    reply = await redis.eval(SCRIPT, 1, ...args);
  }
  if (!Array.isArray(reply) || reply.length !== 3 || !reply.every(Number.isFinite))
    throw new Error('Redis gave no rate decision');
  const [allowed, requestsUs, tokensUs] = reply as [number, number, number];
  return { allowed: allowed === 1, requestsMs: requestsUs / 1_000, tokensMs: tokensUs / 1_000 };
}

/**
 * Rejects after `ms` without a result. It first waits for one more turn of the event loop, so that a reply that arrived
 * while this process was busy still counts.
 */
function within<T>(ms: number, result: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(reject, new Error(`Redis gave no answer in ${ms} ms`)), ms);
    void result.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
