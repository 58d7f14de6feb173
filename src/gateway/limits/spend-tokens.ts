import type { RateDecision, RateLimiter, RatePolicy } from './limiter.ts';

/**
 * Counts the tokens of a call against its key's rate, once they are known. A call that uses more than is left empties
 * the bucket. It is still answered, but the key's next requests have to wait.
 */
export function spendTokens(limiter: RateLimiter, key: string, policy: RatePolicy, tokens: number): void {
  // The first refusal may come from this process, which does not know what other gateways have counted. So the rest may
  // be refused again, by Redis. Each try is smaller than the one before.
  const refused = ({ allowed, tokens: { remaining } }: RateDecision) => {
    if (!allowed && remaining > 0 && remaining < tokens) spendTokens(limiter, key, policy, remaining);
  };
  const spent = limiter.take(key, policy, { requests: 0, tokens });
  if (spent instanceof Promise) void spent.then(refused);
  else refused(spent);
}
