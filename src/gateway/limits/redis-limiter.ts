import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { RedisClient } from '#store';
import { bucketsOf, costMs, decide, type Buckets } from './bucket.ts';
import type { RateAmount, RateDecision, RateLimiter, RatePolicy } from './limiter.ts';
import { createLocalLimiter } from './local-limiter.ts';

const SCRIPT = readFileSync(fileURLToPath(new URL('./take.lua', import.meta.url)), 'utf8');
const SCRIPT_SHA = hash('sha1', SCRIPT);
const PREFIX = 'tollgate:rate:';

/** How often a Redis that failed is tried again. */
const PROBE_EVERY_MS = 250;

interface RateLimiterOptions {
  /** null limits in process. */
  readonly redis: RedisClient | null;
  /** Milliseconds that only go on. */
  readonly now: () => number;
  /** The longest that a request waits for Redis. */
  readonly timeoutMs?: number;
  /** Told when limits begin to be local because Redis failed, and when they are shared again. */
  readonly onChange?: (shared: boolean, error: unknown) => void;
}

/**
 * Limits that all gateways share through Redis; without Redis, or while it fails, limits of this process alone.
 *
 * Calls that pass are also counted in process, for two reasons: when Redis goes away the local limits take over where
 * the shared ones were, not with full buckets; and what this process has let through stays counted when Redis loses
 * its memory. A first failure turns to local limits at once; Redis is then probed beside the requests, never by one
 * of them.
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
   * With the script itself and a key of its own: a Redis that answers but may not write (read only, out of memory)
   * is of no use.
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
    return decide(buckets, reply, amount, reply.allowed);
  };

  return {
    take(key, policy, amount) {
      if (!shared) {
        const sinceMs = now() - probedAt;
        if (!probing && sinceMs >= PROBE_EVERY_MS) void probe(policy);
        return local.take(key, policy, amount);
      }
      // This process alone has let enough through: no need to ask.
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
    tokens.depthMs * 1_000,
    costMs(tokens, amount.tokens) * 1_000,
  ];
  let reply: unknown;
  try {
    reply = await redis.evalsha(SCRIPT_SHA, 1, ...args);
  } catch (error) {
    // The first use on this server, or it was restarted.
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    reply = await redis.eval(SCRIPT, 1, ...args);
  }
  if (!Array.isArray(reply) || reply.length !== 3 || !reply.every(Number.isFinite))
    throw new Error('Redis gave no rate decision');
  const [allowed, requestsUs, tokensUs] = reply as [number, number, number];
  return { allowed: allowed === 1, requestsMs: requestsUs / 1_000, tokensMs: tokensUs / 1_000 };
}

/**
 * Rejects when there is no result in time. The verdict waits for one turn of the event loop, so that a reply which
 * arrived while this process was busy counts.
 */
function within<T>(ms: number, result: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(reject, new Error(`Redis gave no answer in ${ms} ms`)), ms);
    void result.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
