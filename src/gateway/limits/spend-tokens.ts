import type { RateDecision, RateLimiter, RatePolicy } from './limiter.ts';

/**
 * Counts the tokens of a call against its key's rate, once they are known. A call that uses more than is left empties
 * the bucket. It is still answered, but the key's next requests have to wait.
 */
export function spendTokens(limiter: RateLimiter, key: string, policy: RatePolicy, tokens: number): void {
  const emptied = (spent: RateDecision) => {
    if (!spent.allowed && spent.tokens.remaining > 0)
      void limiter.take(key, policy, { requests: 0, tokens: spent.tokens.remaining });
  };
  const spent = limiter.take(key, policy, { requests: 0, tokens });
  if (spent instanceof Promise) void spent.then(emptied);
  else emptied(spent);
}
