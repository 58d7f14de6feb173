import { describe, expect, it } from 'vitest';
import { toHttpError } from '../../../src/server/http/error-table.ts';
import { createLocalLimiter, UNLIMITED } from '../../../src/server/limits/rate-limiter.ts';
import { createRatePolicies, rateHeaders, rateLimitError } from '../../../src/server/limits/caller-rates.ts';
import type { CallerKey } from '../../../src/server/accounts/caller.ts';
import type { LimitsConfig } from '../../../src/server/config/config.ts';

const policy = { requestsPerMinute: 60, burst: 0, tokensPerMinute: 1_000 };

describe('rate headers', () => {
  it('say limit, remaining and reset of requests and tokens', () => {
    const limiter = createLocalLimiter({ now: () => 0 });
    expect(rateHeaders(limiter.take('key', policy, { requests: 1, tokens: 100 }))).toEqual({
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-reset-requests': '1',
      'x-ratelimit-limit-tokens': '1000',
      'x-ratelimit-remaining-tokens': '900',
      'x-ratelimit-reset-tokens': '6',
    });
  });

  it('say nothing of tokens without a limit', () => {
    const unlimited = { ...policy, tokensPerMinute: UNLIMITED };
    const limiter = createLocalLimiter({ now: () => 0 });
    expect(Object.keys(rateHeaders(limiter.take('key', unlimited, { requests: 1, tokens: 0 })))).toEqual([
      'x-ratelimit-limit-requests',
      'x-ratelimit-remaining-requests',
      'x-ratelimit-reset-requests',
    ]);
  });

  it('come with Retry-After on a 429, which names the limit that was hit', () => {
    const limiter = createLocalLimiter({ now: () => 0 });
    limiter.take('key', policy, { requests: 1, tokens: 1_000 });
    const tokens = toHttpError(rateLimitError(limiter.take('key', policy, { requests: 1, tokens: 500 })));
    expect(tokens).toMatchObject({ status: 429, body: { error: { type: 'rate_limit_exceeded', code: 429 } } });
    expect(tokens.headers).toMatchObject({ 'retry-after': '30', 'x-ratelimit-remaining-tokens': '0' });
    expect(tokens.body.error.message).toBe('Rate limit of 1000 tokens per minute exceeded: retry in 30 s');

    for (let round = 0; round < 60; round += 1) limiter.take('key', policy, { requests: 1, tokens: 0 });
    const requests = toHttpError(rateLimitError(limiter.take('key', policy, { requests: 1, tokens: 0 })));
    expect(requests.headers['retry-after']).toBe('1');
    expect(requests.body.error.message).toContain('60 requests');
  });
});

describe('rate policies', () => {
  it('give the development account its own rate, and are the same object each time', () => {
    const limits = {
      requestsPerMinute: 60,
      burst: 20,
      developmentRequestsPerMinute: 6_000,
      tokensPerMinute: 9,
    } as LimitsConfig;
    const policies = createRatePolicies(limits);
    const caller = (development: boolean) => ({ account: 'a', key: { development } as CallerKey, wallet: null });
    expect(policies.policyOf(caller(false))).toEqual({ requestsPerMinute: 60, burst: 20, tokensPerMinute: 9 });
    expect(policies.policyOf(caller(true))).toEqual({ requestsPerMinute: 6_000, burst: 20, tokensPerMinute: 9 });
    expect(policies.policyOf({ account: 'a', key: null, wallet: null })).toBe(policies.policyOf(caller(false)));
  });

  it('of accounts limit only what is set, and their headers say nothing of the rest', () => {
    const policies = createRatePolicies({} as LimitsConfig);
    const shared = (requestsPerMinute: number | null, tokensPerMinute: number | null) =>
      policies.shared({
        account: 'a',
        key: null,
        wallet: null,
        rates: {
          key: null,
          account: { requestsPerMinute, tokensPerMinute, requestsByOperator: true, tokensByOperator: true },
        },
      })!;
    const limiter = createLocalLimiter({ now: () => 0 });
    const ofRequests = shared(2, null);
    for (let call = 0; call < 2; call += 1)
      expect(limiter.take('requests', ofRequests, { requests: 1, tokens: 1e12 }).allowed).toBe(true);
    const requests = rateLimitError(limiter.take('requests', ofRequests, { requests: 1, tokens: 1 }));
    expect(requests.message).toBe('Rate limit of 2 requests per minute exceeded: retry in 30 s');
    expect(Object.keys(requests.headers ?? {}).join()).not.toContain('tokens');

    const ofTokens = shared(null, 5);
    expect(limiter.take('tokens', ofTokens, { requests: 1e12, tokens: 5 }).allowed).toBe(true);
    const tokens = rateLimitError(limiter.take('tokens', ofTokens, { requests: 1, tokens: 1 }));
    expect(tokens.message).toBe('Rate limit of 5 tokens per minute exceeded: retry in 12 s');
    expect(Object.keys(tokens.headers ?? {}).join()).not.toContain('requests');
  });
});
