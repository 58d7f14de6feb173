import { after } from '#wire';
import { GatewayError } from '#errors';
import type { LimitsConfig } from '#config';
import { type Caller, isDevelopment, type AccountRates, type MinuteRates } from '#accounts';
import {
  type RateAmount,
  type RateDecision,
  type RateLimiter,
  type RatePolicy,
  UNLIMITED,
  type RateWindow,
} from './rate-limiter.ts';

export interface Admission {
  readonly caller: Caller;
  readonly rate: RateDecision;
}

/** A request that was refused. */
export interface RefusedRequest {
  readonly error: unknown;
  /** null if only who threw the error knows. */
  readonly caller: Caller | null;
  /** The service with its protocol, or the method and route. */
  readonly target: string;
  readonly requestId: string;
}

/** Told of requests that were refused before they became calls. */
export type OnRefused = (refused: RefusedRequest) => void;

export interface CallerRatesOptions {
  readonly limiter: RateLimiter;
  /** `pages`: the policy for the requests that the web pages of a session make to read data. See pagesOf. */
  readonly policy: (caller: Caller, pages?: boolean) => RatePolicy;
  readonly sharedPolicy: (caller: Caller) => RatePolicy | null;
  readonly countPolicy: (caller: Caller) => RatePolicy;
  readonly newKeyPolicy: (caller: Caller) => RatePolicy;
  /** The network that stands for the account of the caller as well; null for none, which is the default. */
  readonly unfundedNetwork?: (caller: Caller, address: string) => string | null | Promise<string | null>;
  readonly onRateLimited: (limit: 'requests' | 'tokens', caller: Caller, error: GatewayError) => void;
}

/** The rates of callers. All methods throw or reject with GatewayError `rate_limit_exceeded`. */
interface CallerRates {
  /**
   * Counts an admitted request of an account that costs nothing and never had money: all of them at one network have
   * together the rate of one account, because whoever has one has any number. `kind`: requests that have counters of
   * their own.
   */
  takeUnfunded(admission: Admission, address: string, kind?: 'polls' | 'counts'): Admission | Promise<Admission>;
  /** Counts one request. `calls`: see Pipeline.admit. */
  take(caller: Caller, calls: boolean | undefined): Admission | Promise<Admission>;
  /** Counts a request that polls the state of work. */
  takePoll(caller: Caller): Admission | Promise<Admission>;
  takeCount(caller: Caller): Admission | Promise<Admission>;
  /** Counts requests that `take` did not count. */
  takeMore(caller: Caller, requests: number): Promise<void>;
  takeNewKey(caller: Caller): Promise<void>;
}

export function createCallerRates(options: CallerRatesOptions): CallerRates {
  const refusal = (caller: Caller, rate: RateDecision, owner = ownerOf(caller)) => {
    const error = rateLimitError(rate, owner);
    options.onRateLimited(rate.requests.remaining < 1 ? 'requests' : 'tokens', caller, error);
    return error;
  };

  const admitted = (caller: Caller, rate: RateDecision, owner?: string): Admission => {
    if (rate.allowed) return { caller, rate };
    throw refusal(caller, rate, owner);
  };

  const take = (
    caller: Caller,
    bucket: string,
    policy: RatePolicy,
    amount: RateAmount,
    owner?: string,
  ): Admission | Promise<Admission> => {
    return after(options.limiter.take(bucket, policy, amount), (rate) => admitted(caller, rate, owner));
  };

  /** Counts a request of the caller against the rate of its account as well. `key`: see sharedAs. */
  const takeShared = (
    { caller, rate: own }: Admission,
    amount: RateAmount,
    policy: RatePolicy,
    key: string,
  ): Admission | Promise<Admission> => {
    const both = (rate: RateDecision): Admission => {
      if (rate.allowed) return { caller, rate: bothDecisions(own, rate) };
      throw refusal(caller, rate, OF_ACCOUNT);
    };
    return after(options.limiter.take(key, policy, amount), both);
  };

  /** Not asked together: a key that is refused uses nothing of what its account has left for other keys. */
  const thenShared = (
    admission: Admission | Promise<Admission>,
    amount: RateAmount,
    policy: RatePolicy | null,
    key: string,
  ): Admission | Promise<Admission> => {
    if (policy === null) return admission;
    return after(admission, (own) => takeShared(own, amount, policy, key));
  };

  /** Limits requests of one kind that are not calls. The key and the account each have a counter for the kind. */
  function limitedApart(kind: string, caller: Caller, policy: RatePolicy): Admission | Promise<Admission> {
    const admission = take(caller, `${kind} ${limitedAs(caller)}`, policy, NO_CALL, `${ownerOf(caller)} for ${kind}`);
    return thenShared(admission, NO_CALL, options.sharedPolicy(caller), `${kind} ${sharedAs(caller)}`);
  }

  return {
    takeUnfunded(admission, address, kind) {
      const { caller } = admission;
      // The operator has looked at an account whose rate it set.
      if (caller.rates?.account?.requestsByOperator === true) return admission;
      return after(options.unfundedNetwork?.(caller, address) ?? null, (network) => {
        // Never the rate that an account has chosen: the counter is not of that account alone.
        const { rates: _, ...rateless } = caller;
        const policy = network === null ? null : options.sharedPolicy(rateless);
        if (policy === null) return admission;
        const bucket = `${kind === undefined ? '' : `${kind} `}unfunded:${network}`;
        return after(take(caller, bucket, policy, ONE_REQUEST, OF_UNFUNDED), () => admission);
      });
    },
    take(caller, calls) {
      const pages = calls === true ? null : pagesOf(caller);
      const policy = options.policy(caller, pages !== null);
      const admission = take(
        caller,
        pages ?? limitedAs(caller),
        policy,
        ONE_REQUEST,
        pages === null ? undefined : OF_PAGES,
      );
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
      if (!rate.allowed) throw refusal(caller, rate, ' for new keys of the account');
    },
  };
}

const OF_ACCOUNT = ' of the account';
const OF_UNFUNDED = ' of all accounts without money at your network';
const OF_PAGES = ' of these web pages';
/** Whose rate it is under the name of limitedAs. */
const ownerOf = ({ key, anonymous, paying }: Caller): string => {
  if (anonymous || paying) return ' without an account';
  return key === null ? ' of requests without a key' : ' of this key';
};

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

/**
 * `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`. limit: the steady rate per minute, without the burst.
 * remaining: never more than limit. reset: whole seconds until the bucket is full again. The headers for a rate
 * without a limit are left out.
 */
export function rateHeaders({ requests, tokens }: RateDecision): Record<string, string> {
  const headers: Record<string, string> = {};
  if (requests.perMinute !== UNLIMITED) {
    headers['x-ratelimit-limit-requests'] = String(requests.perMinute);
    headers['x-ratelimit-remaining-requests'] = String(Math.min(requests.remaining, requests.perMinute));
    headers['x-ratelimit-reset-requests'] = String(Math.ceil(requests.resetS));
  }
  if (tokens.perMinute !== UNLIMITED) {
    headers['x-ratelimit-limit-tokens'] = String(tokens.perMinute);
    headers['x-ratelimit-remaining-tokens'] = String(tokens.remaining);
    headers['x-ratelimit-reset-tokens'] = String(Math.ceil(tokens.resetS));
  }
  return headers;
}

/** Combines two decisions about one request into one. Each window comes from the decision that has less of it left. */
function bothDecisions(one: RateDecision, other: RateDecision): RateDecision {
  const nearer = (a: RateWindow, b: RateWindow) => (b.remaining < a.remaining ? b : a);
  return {
    allowed: one.allowed && other.allowed,
    retryAfterS: Math.max(one.retryAfterS, other.retryAfterS),
    requests: nearer(one.requests, other.requests),
    tokens: nearer(one.tokens, other.tokens),
  };
}

/**
 * The error of a refused decision: `rate_limit_exceeded` with Retry-After and the rate headers. `owner`: that of the
 * limit, if it is not the caller alone.
 */
export function rateLimitError(decision: RateDecision, owner = ''): GatewayError {
  const { requests, tokens, retryAfterS } = decision;
  const window = requests.remaining < 1 ? `${requests.perMinute} requests` : `${tokens.perMinute} tokens`;
  const seconds = Math.max(1, Math.ceil(retryAfterS));
  return new GatewayError(
    'rate_limit_exceeded',
    `Rate limit of ${window} per minute${owner} exceeded: retry in ${seconds} s`,
    {
      retryAfterS: seconds,
      headers: rateHeaders(decision),
    },
  );
}

export interface RatePolicies {
  readonly policyOf: (caller: Caller, pages?: boolean) => RatePolicy;
  /** Requests per minute of a key without a rate of its own. */
  readonly ofKey: () => number;
  /** The policy that all callers of the account share; null if the account has no rate. */
  readonly shared: (caller: Caller) => RatePolicy | null;
  /** How often the caller may count the tokens of a prompt. All keys of its account share the rate of `shared`. */
  readonly counts: (caller: Caller) => RatePolicy;
  /** How many keys the caller's account may create. Each key has a rate of its own. */
  readonly newKeys: (caller: Caller) => RatePolicy;
  /** Replaces the limits, from the next request on. */
  readonly replace: (limits: LimitsConfig) => void;
}

/**
 * The policies of the configuration: for ordinary callers, for the development account, for callers without a
 * credential, and for the requests of a session's web pages. They are made once, because limiters know policies by
 * identity. Keys and accounts with their own rates get their own policies.
 */
export function createRatePolicies(limits: LimitsConfig): RatePolicies {
  let policies = policiesOf(limits);
  let ofKeys = new WeakMap<MinuteRates, RatePolicy>();
  const countsOfKeys = new WeakMap<MinuteRates, RatePolicy>();
  let ofAccounts = new WeakMap<MinuteRates, RatePolicy>();
  const usual = (caller: Caller): RatePolicy => {
    if (isDevelopment(caller)) return policies.development;
    return caller.anonymous || caller.paying ? policies.anonymous : policies.ordinary;
  };
  return {
    policyOf(caller, pages = false) {
      if (pages) return policies.ofPages;
      const { key: own = null, account: all = null } = caller.rates ?? {};
      const raised = all?.requestsByOperator || all?.tokensByOperator ? all : null;
      if (own === null)
        return raised === null ? usual(caller) : cachedPolicy(ofKeys, raised, () => forAll(usual(caller), raised));
      return cachedPolicy(ofKeys, own, () =>
        lowered(raised === null ? usual(caller) : forAll(usual(caller), raised), own),
      );
    },
    ofKey: () => policies.ordinary.requestsPerMinute,
    shared(caller) {
      const all = caller.rates?.account ?? null;
      // Strangers are counted by their network.
      const usual = isDevelopment(caller) || caller.anonymous || caller.paying ? null : policies.ofAccounts;
      return all === null ? usual : cachedPolicy(ofAccounts, all, () => sharedPolicy(all, usual));
    },
    counts(caller) {
      const own = caller.rates?.key ?? null;
      return own === null ? COUNTS : cachedPolicy(countsOfKeys, own, () => lowered(COUNTS, own));
    },
    newKeys: (caller) => (isDevelopment(caller) ? policies.newDevelopmentKeys : policies.newKeys),
    replace(next) {
      policies = policiesOf(next);
      ofKeys = new WeakMap();
      ofAccounts = new WeakMap();
    },
  };
}

function cachedPolicy(
  policies: WeakMap<MinuteRates, RatePolicy>,
  rates: MinuteRates,
  make: () => RatePolicy,
): RatePolicy {
  let policy = policies.get(rates);
  if (policy === undefined) policies.set(rates, (policy = make()));
  return policy;
}

/**
 * The policy of a key of an account whose rates the operator set: each of its keys may use all of them. Lower ones hold
 * for the account as a whole.
 */
const forAll = (
  usual: RatePolicy,
  { requestsPerMinute, tokensPerMinute, requestsByOperator, tokensByOperator }: AccountRates,
): RatePolicy => ({
  requestsPerMinute: Math.max(usual.requestsPerMinute, (requestsByOperator && requestsPerMinute) || 0),
  burst: usual.burst,
  tokensPerMinute: Math.max(usual.tokensPerMinute, (tokensByOperator && tokensPerMinute) || 0),
});

/** The policy of a key with its own rates. They never allow more than the gateway's rates, and have no burst. */
function lowered(usual: RatePolicy, { requestsPerMinute, tokensPerMinute }: MinuteRates): RatePolicy {
  const lowers = requestsPerMinute !== null && requestsPerMinute < usual.requestsPerMinute;
  return {
    requestsPerMinute: lowers ? requestsPerMinute : usual.requestsPerMinute,
    burst: lowers ? 0 : usual.burst,
    tokensPerMinute: Math.min(tokensPerMinute ?? Infinity, usual.tokensPerMinute),
  };
}

/**
 * The policy of an account with its own rates. The rate that the operator set replaces the usual one. The owner can
 * only lower it.
 */
function sharedPolicy(
  { requestsPerMinute, tokensPerMinute, requestsByOperator }: AccountRates,
  usual: RatePolicy | null,
): RatePolicy {
  const most = requestsByOperator ? UNLIMITED : (usual?.requestsPerMinute ?? UNLIMITED);
  const lowers = requestsPerMinute !== null && requestsPerMinute < most;
  return {
    requestsPerMinute: lowers ? requestsPerMinute : most,
    burst: lowers || usual === null ? 0 : usual.burst,
    tokensPerMinute: tokensPerMinute ?? UNLIMITED,
  };
}

/** Coding agents send about 30 counts at once. These should not use up the rate of their key. */
const COUNTS: RatePolicy = { requestsPerMinute: 600, burst: 0, tokensPerMinute: UNLIMITED };
/** Without `account_requests_per_minute`, an account has the rate of this many keys. */
const KEYS_OF_AN_ACCOUNT = 10;
/** An account may create a key for this many requests of the rate of one key. */
const REQUESTS_PER_NEW_KEY = 2;

function policiesOf(limits: LimitsConfig) {
  const { burst, tokensPerMinute } = limits;
  const policy = (requestsPerMinute: number): RatePolicy => ({ requestsPerMinute, burst, tokensPerMinute });
  const ofAccount = limits.accountRequestsPerMinute ?? KEYS_OF_AN_ACCOUNT * limits.requestsPerMinute;
  const newKeys = (requests: number) => policy(Math.ceil(requests / REQUESTS_PER_NEW_KEY));
  return {
    ofAccounts: { ...policy(ofAccount), tokensPerMinute: UNLIMITED },
    newKeys: newKeys(limits.requestsPerMinute),
    newDevelopmentKeys: newKeys(limits.developmentRequestsPerMinute),
    ordinary: policy(limits.requestsPerMinute),
    development: policy(limits.developmentRequestsPerMinute),
    // Each of their calls is paid for, so their tokens are not counted.
    anonymous: policy(limits.anonymousRequestsPerMinute),
    ofPages: policy(limits.sessionRequestsPerMinute),
  };
}
