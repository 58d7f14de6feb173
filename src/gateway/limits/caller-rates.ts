import type { Caller } from '../call.ts';
import type { RateAmount, RateDecision, RateLimiter, RatePolicy } from './limiter.ts';
import { bothDecisions, rateLimitError } from './rate-headers.ts';

export interface Admission {
  readonly caller: Caller;
  readonly rate: RateDecision;
}

export interface CallerRatesOptions {
  readonly limiter: RateLimiter;
  /** `pages`: the policy for the requests that the web pages of a session make to read data. See pagesOf. */
  readonly policy: (caller: Caller, pages?: boolean) => RatePolicy;
  /** The rate that all callers of the account share; null if the account has none. */
  readonly sharedPolicy: (caller: Caller) => RatePolicy | null;
  /** The rate at which the caller may count the tokens of prompts. */
  readonly countPolicy: (caller: Caller) => RatePolicy;
  /** The rate of new keys of the caller's account. */
  readonly newKeyPolicy: (caller: Caller) => RatePolicy;
  readonly onRateLimited: (of: 'requests' | 'tokens') => void;
}

/** The rates of callers. All methods throw or reject with GatewayError `rate_limit_exceeded`. */
interface CallerRates {
  /** Counts one request. `calls`: see Pipeline.admit. */
  take(caller: Caller, calls: boolean | undefined): Admission | Promise<Admission>;
  /** Counts a request that polls the state of work. */
  takePoll(caller: Caller): Admission | Promise<Admission>;
  /** Counts a request that estimates the tokens of a prompt. */
  takeCount(caller: Caller): Admission | Promise<Admission>;
  /** Counts requests that `take` did not count. */
  takeMore(caller: Caller, requests: number): Promise<void>;
  /** Counts a new key of the caller's account. */
  takeNewKey(caller: Caller): Promise<void>;
}

export function createCallerRates(options: CallerRatesOptions): CallerRates {
  const refusal = (rate: RateDecision, of?: string) => {
    options.onRateLimited(rate.requests.remaining < 1 ? 'requests' : 'tokens');
    return rateLimitError(rate, of);
  };

  const admitted = (caller: Caller, rate: RateDecision): Admission => {
    if (rate.allowed) return { caller, rate };
    throw refusal(rate);
  };

  const take = (
    caller: Caller,
    bucket: string,
    policy: RatePolicy,
    amount: RateAmount,
  ): Admission | Promise<Admission> => {
    const rate = options.limiter.take(bucket, policy, amount);
    return rate instanceof Promise ? rate.then((one) => admitted(caller, one)) : admitted(caller, rate);
  };

  /** Counts a request of the caller against the rate of its account as well. `of`: see sharedAs. */
  const takeShared = (
    { caller, rate: own }: Admission,
    amount: RateAmount,
    policy: RatePolicy,
    of: string,
  ): Admission | Promise<Admission> => {
    const both = (rate: RateDecision): Admission => {
      if (rate.allowed) return { caller, rate: bothDecisions(own, rate) };
      throw refusal(rate, ' of the account');
    };
    const rate = options.limiter.take(of, policy, amount);
    return rate instanceof Promise ? rate.then(both) : both(rate);
  };

  /** Not asked together: a key that is refused uses nothing of what its account has left for other keys. */
  const thenShared = (
    admission: Admission | Promise<Admission>,
    amount: RateAmount,
    policy: RatePolicy | null,
    of: string,
  ): Admission | Promise<Admission> => {
    if (policy === null) return admission;
    return admission instanceof Promise
      ? admission.then((own) => takeShared(own, amount, policy, of))
      : takeShared(admission, amount, policy, of);
  };

  /** Limits requests of one kind that are not calls. The key and the account each have a counter for the kind. */
  function limitedApart(kind: string, caller: Caller, policy: RatePolicy): Admission | Promise<Admission> {
    const admission = take(caller, `${kind} ${limitedAs(caller)}`, policy, NO_CALL);
    return thenShared(admission, NO_CALL, options.sharedPolicy(caller), `${kind} ${sharedAs(caller)}`);
  }

  return {
    take(caller, calls) {
      const pages = calls === true ? null : pagesOf(caller);
      const admission = take(caller, pages ?? limitedAs(caller), options.policy(caller, pages !== null), ONE_REQUEST);
      return thenShared(admission, ONE_REQUEST, pages === null ? options.sharedPolicy(caller) : null, sharedAs(caller));
    },
    takePoll: (caller) => limitedApart('polls', caller, options.policy(caller)),
    takeCount: (caller) => limitedApart('counts', caller, options.countPolicy(caller)),
    async takeMore(caller, requests) {
      const amount = { requests, tokens: 0 };
      const admission = take(caller, limitedAs(caller), options.policy(caller), amount);
      await thenShared(admission, amount, options.sharedPolicy(caller), sharedAs(caller));
    },
    async takeNewKey(caller) {
      const rate = await options.limiter.take(`new keys of ${caller.account}`, options.newKeyPolicy(caller), NO_CALL);
      if (!rate.allowed) throw refusal(rate, ' for new keys of the account');
    },
  };
}

/** The tokens that a call uses are only known and counted at its end. To begin, at least one must be left. */
const ONE_REQUEST: RateAmount = { requests: 1, tokens: 1 };
/** A request that uses no tokens. */
const NO_CALL: RateAmount = { requests: 1, tokens: 0 };

/** The name under which a caller's rate is counted. Callers without a credential are counted by their network. */
export function limitedAs(caller: Caller): string {
  const { from } = caller.anonymous ?? caller.paying ?? NOWHERE;
  return from === undefined ? (caller.key?.hash ?? caller.account) : `anonymous:${from}`;
}

/** The name under which all requests of an account are counted, if the account has its own rate. */
export const sharedAs = ({ account }: Pick<Caller, 'account'>): string => `account:${account}`;

/**
 * The name under which requests of a session's web pages are counted; null for a caller without a session. A page reads
 * several things at once, so pages have their own rate. Calls count under the key or account.
 */
const pagesOf = ({ session }: Caller): string | null => (session === undefined ? null : `session:${session.id}`);

const NOWHERE: { readonly from?: string } = {};
