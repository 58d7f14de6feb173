import { expect, test } from 'vitest';
import { spendTokens } from '#limits';
import { createLocalLimiter } from '../../../src/server/limits/rate-limiter.ts';

const policy = { requestsPerMinute: 1000, burst: 0, tokensPerMinute: 600 };
const one = { requests: 1, tokens: 1 };

test('what a call used is taken from its key, and a key without tokens waits until they come back', async () => {
  let at = 1_000_000;
  const limiter = createLocalLimiter({ now: () => at });
  expect(limiter.take('key', policy, one).tokens.remaining).toBe(599);
  spendTokens(limiter, 'key', policy, 400);
  expect(limiter.check('key', policy, one).tokens.remaining).toBe(198);
  // More than is left: it was used all the same.
  spendTokens(limiter, 'key', policy, 5_000);
  const refused = limiter.take('key', policy, one);
  expect(refused.allowed).toBe(false);
  expect(refused.requests.remaining).toBeGreaterThan(900);
  at += refused.retryAfterS * 1000;
  expect(limiter.take('key', policy, one).allowed).toBe(true);
});
