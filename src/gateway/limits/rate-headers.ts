import { GatewayError } from '#wire';
import type { LimitsConfig } from '#config';
import { type Caller, isDevelopment } from '../call.ts';
import type { RateDecision, RatePolicy } from './limiter.ts';

/**
 * `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`: limit is the steady rate of a minute, without the burst,
 * and remaining never more than it; reset is whole seconds until the window is whole again.
 */
export function rateHeaders({ requests, tokens }: RateDecision): Record<string, string> {
  return {
    'x-ratelimit-limit-requests': String(requests.perMinute),
    'x-ratelimit-remaining-requests': String(Math.min(requests.remaining, requests.perMinute)),
    'x-ratelimit-reset-requests': String(Math.ceil(requests.resetS)),
    'x-ratelimit-limit-tokens': String(tokens.perMinute),
    'x-ratelimit-remaining-tokens': String(tokens.remaining),
    'x-ratelimit-reset-tokens': String(Math.ceil(tokens.resetS)),
  };
}

/** The error of a refused decision: `rate_limit_exceeded` with Retry-After and the rate headers. */
export function rateLimitError(decision: RateDecision): GatewayError {
  const { requests, tokens, retryAfterS } = decision;
  const window = requests.remaining < 1 ? `${requests.perMinute} requests` : `${tokens.perMinute} tokens`;
  const seconds = Math.max(1, Math.ceil(retryAfterS));
  return new GatewayError('rate_limit_exceeded', `Rate limit of ${window} per minute exceeded: retry in ${seconds} s`, {
    retryAfterS: seconds,
    headers: rateHeaders(decision),
  });
}

/**
 * The policies of the configuration, made once as limiters know policies by identity: one for ordinary callers, one
 * for the development account, one for those without a credential, one for what the pages of a session read.
 */
export function createRatePolicies(limits: LimitsConfig): {
  readonly of: (caller: Caller, pages?: boolean) => RatePolicy;
  /** From the next request on. */
  readonly replace: (limits: LimitsConfig) => void;
} {
  let policies = policiesOf(limits);
  return {
    of(caller, pages = false) {
      if (pages) return policies.ofPages;
      if (isDevelopment(caller)) return policies.development;
      return caller.anonymous || caller.paying ? policies.anonymous : policies.ordinary;
    },
    replace(next) {
      policies = policiesOf(next);
    },
  };
}

function policiesOf(limits: LimitsConfig) {
  const { burst, tokensPerMinute } = limits;
  const policy = (requestsPerMinute: number): RatePolicy => ({ requestsPerMinute, burst, tokensPerMinute });
  return {
    ordinary: policy(limits.requestsPerMinute),
    development: policy(limits.developmentRequestsPerMinute),
    // Their calls are paid for, so their tokens are not counted.
    anonymous: policy(limits.anonymousRequestsPerMinute),
    ofPages: policy(limits.sessionRequestsPerMinute),
  };
}
