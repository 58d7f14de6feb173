import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, NEVER_ABORTED } from '#wire';
import { formatUsd, type Billable, type Frame, type Leaving, type LockResult } from '#billing';
import type { Primitive } from '#config';
import { ACCOUNT_HEADER, nobodyActs } from './acting.ts';
import { visitorOf } from './anonymous.ts';
import type { Call, Caller, Handler } from './call.ts';
import type { CallRequest } from './call-request.ts';
import { budgetError } from './limits/budget-error.ts';
import { bothDecisions, rateLimitError } from './limits/rate-headers.ts';
import type { RateAmount, RateDecision, RateLimiter, RatePolicy } from './limits/limiter.ts';
import type { CallObserver } from './observer.ts';
import { createPrepare, type PrepareOptions } from './prepare.ts';

export interface Admission {
  readonly caller: Caller;
  readonly rate: RateDecision;
}

/** authenticate → resolve → authorise → limit → bill → execute. One object for every protocol. */
export interface Pipeline {
  /**
   * Authenticates and counts one request against the caller's limits. `address` is the client's; `calls`: calls are
   * made here, so that agents that act under a running call are let in too, and, where calls can be paid for in
   * place, those without a credential. Who acts for another account is counted as itself. Throws or rejects with
   * GatewayError `unauthorized`, `rate_limit_exceeded`, `permission_denied`, `not_found`.
   */
  admit(headers: IncomingHttpHeaders, address: string, calls?: boolean): Admission | Promise<Admission>;
  /**
   * The same for a request that asks how work stands. Such requests are counted apart, at the same rate: who waits for
   * one call does not use up what he may call.
   */
  admitPoll: Pipeline['admit'];
  /**
   * The caller of a request that needs no credential: the account of a valid credential, else the client's network.
   * Nothing is counted.
   */
  visitor(headers: IncomingHttpHeaders, address: string): Caller | Promise<Caller>;
  /**
   * Counts requests that admit() did not: those of a batch, and of visitors. Throws GatewayError `rate_limit_exceeded`.
   */
  count(caller: Caller, requests: number): Promise<void>;
  /**
   * Resolves the target to priced candidates and authorises the caller for them. `id` is of newCallId, where it had
   * to be known before. While all providers are away it waits for one to return. Throws or rejects with GatewayError
   * `invalid_model`, `permission_denied`, `no_provider_healthy`.
   */
  prepare(request: CallRequest, id?: string): Call | Promise<Call>;
  /**
   * For doors that resolve a name before prepare: settles when it is known here if any gateway of the database
   * knows it. null where there is nothing to wait for.
   */
  lookUp(name: string, primitive: Primitive): Promise<void> | null;
  /**
   * Locks, forwards and settles; a free call is only forwarded. Iterate to the end; abort `signal` when the client
   * is gone. Throws GatewayError before or during the stream. The last frame is `settled`.
   */
  run(call: Call, signal: Leaving): AsyncIterable<Frame, void, undefined>;
  /** Calls in flight, for shutdown and metrics. */
  inFlight(): number;
}

export interface PipelineOptions extends PrepareOptions {
  readonly authenticate: (headers: IncomingHttpHeaders, address: string, calls?: boolean) => Caller | Promise<Caller>;
  /** The caller as a member that acts for the account of ACCOUNT_HEADER. Default: nobody acts for another account. */
  readonly act?: (headers: IncomingHttpHeaders, own: Caller) => Promise<Caller>;
  readonly limiter: RateLimiter;
  /** `pages`: of what the pages of a session read, see pagesOf. */
  readonly policy: (caller: Caller, pages?: boolean) => RatePolicy;
  /** All callers of the account share it; null without such a rate. */
  readonly sharedPolicy: (caller: Caller) => RatePolicy | null;
  readonly onRateLimited: (of: 'requests' | 'tokens') => void;
  /** bill(execute). */
  readonly billed: Handler;
  /** free(execute). */
  readonly unbilled: Handler;
  readonly observer: CallObserver;
}

export function createPipeline(options: PipelineOptions): Pipeline {
  const { catalog } = options;

  const take = (caller: Caller, bucket: string, pages: boolean): Admission | Promise<Admission> => {
    // What a call uses is known at its end and counted then; to begin, there must be a token left.
    const rate = options.limiter.take(bucket, options.policy(caller, pages), ONE_REQUEST);
    return rate instanceof Promise ? rate.then((one) => admitted(caller, one)) : admitted(caller, rate);
  };

  /** Counts a request of the caller against the rate of its account, too. */
  const takeShared = async (admission: Admission, amount: RateAmount, policy: RatePolicy): Promise<Admission> => {
    const { caller } = admission;
    const rate = await options.limiter.take(sharedAs(caller), policy, amount);
    if (rate.allowed) return { caller, rate: bothDecisions(admission.rate, rate) };
    options.onRateLimited(rate.requests.remaining < 1 ? 'requests' : 'tokens');
    throw rateLimitError(rate, ' of the account');
  };

  function limited(caller: Caller, calls: boolean | undefined): Admission | Promise<Admission> {
    const pages = calls === true ? null : pagesOf(caller);
    const admission = take(caller, pages ?? limitedAs(caller), pages !== null);
    const shared = pages === null ? options.sharedPolicy(caller) : null;
    if (shared === null) return admission;
    return Promise.resolve(admission).then((own) => takeShared(own, ONE_REQUEST, shared));
  }

  /** After the rate: whom a caller may act for is asked of the database, and strangers ask, too. */
  const acting = (headers: IncomingHttpHeaders, admission: Admission | Promise<Admission>) => {
    if (headers[ACCOUNT_HEADER] === undefined) return admission;
    return Promise.resolve(admission).then(async ({ caller, rate }) => {
      if (options.act === undefined) throw nobodyActs();
      return { caller: await options.act(headers, caller), rate };
    });
  };

  const limitedPoll = (caller: Caller) => take(caller, `polls ${limitedAs(caller)}`, false);

  /** Throws GatewayError `rate_limit_exceeded`. */
  function admitted(caller: Caller, rate: RateDecision): Admission {
    if (rate.allowed) return { caller, rate };
    options.onRateLimited(rate.requests.remaining < 1 ? 'requests' : 'tokens');
    throw rateLimitError(rate);
  }

  return {
    lookUp: (name, primitive) => (catalog.knows(name, primitive) ? null : (options.catchUp?.() ?? null)),
    inFlight: options.observer.inFlight,
    run(call, signal) {
      if (call.free !== null) return options.unbilled(call, signal);
      return call.outlivesClient ? toTheEnd(options.billed(call, NEVER_ABORTED)) : options.billed(call, signal);
    },

    admit(headers, address, calls) {
      const caller = options.authenticate(headers, address, calls);
      return acting(
        headers,
        caller instanceof Promise ? caller.then((one) => limited(one, calls)) : limited(caller, calls),
      );
    },
    admitPoll(headers, address, calls) {
      const caller = options.authenticate(headers, address, calls);
      return acting(headers, caller instanceof Promise ? caller.then(limitedPoll) : limitedPoll(caller));
    },

    visitor: (headers, address) => visitorOf(options.authenticate, headers, address),

    async count(caller, requests) {
      const rate = await options.limiter.take(limitedAs(caller), options.policy(caller), { requests, tokens: 0 });
      if (!rate.allowed) {
        options.onRateLimited('requests');
        throw rateLimitError(rate);
      }
      const shared = options.sharedPolicy(caller);
      if (shared !== null) await takeShared({ caller, rate }, { requests, tokens: 0 }, shared);
    },

    prepare: createPrepare(options),
  };
}

/** The frames of a call that is read on whoever stops reading it. */
async function* toTheEnd(frames: AsyncIterable<Frame, void, undefined>): AsyncGenerator<Frame, void, undefined> {
  const iterator = frames[Symbol.asyncIterator]();
  let over = false;
  try {
    for (;;) {
      const step = await iterator.next();
      over = step.done === true;
      if (step.done) return;
      yield step.value;
    }
  } catch (error) {
    over = true;
    throw error;
  } finally {
    // What fails now was told by whoever settles it.
    while (!over)
      over = await iterator.next().then(
        ({ done }) => done === true,
        () => true,
      );
  }
}

const ONE_REQUEST = { requests: 1, tokens: 1 };

/** The name that a caller's rate is counted under. Callers without a credential are counted by their network. */
export function limitedAs(caller: Caller): string {
  const { from } = caller.anonymous ?? caller.paying ?? NOWHERE;
  return from === undefined ? (caller.key?.hash ?? caller.account) : `anonymous:${from}`;
}

/** The name that all requests of an account are counted under, where it has a rate of its own. */
export const sharedAs = ({ account }: Pick<Caller, 'account'>): string => `account:${account}`;

/**
 * The name that requests of a session's pages are counted under; null for a caller without one. A page reads several
 * things at once, so it has a rate of its own. Calls count as those of the key or account.
 */
const pagesOf = ({ session }: Caller): string | null => (session === undefined ? null : `session:${session.id}`);

const NOWHERE: { readonly from?: string } = {};

/**
 * A call as billing takes it. `graceMs`: the longest that a call can go on after its clock has ended it, for its
 * drain or for a client that takes nothing.
 */
export function toBillable(call: Call, graceMs: number): Billable {
  return {
    id: call.id,
    account: call.caller.account,
    quotes: call.candidates,
    budgets: call.caller.budgets ?? NO_BUDGETS,
    // The time that is left to a call of a run has fractions of a millisecond.
    lockExpiresAt: Math.ceil(call.startedAt + call.timeoutMs + graceMs + LOCK_MARGIN_MS),
    // Members that are undefined are left out.
    lockDetail: JSON.stringify({
      primitive: call.primitive,
      service: call.service,
      operation: call.operation ?? undefined,
      continues: call.continues ?? undefined,
      parent: call.parent ?? undefined,
      key: call.caller.key?.hash ?? null,
      // As the wallet signed it: its account is one on every network.
      caip10: call.caller.wallet?.caip10,
      requestId: call.requestId,
      stream: call.stream,
    }),
    ceiling: true,
    continues: call.continues,
    parent: call.parent,
    lendable: call.lendable,
    endsWithCall: call.exchange.endsWithCall ?? false,
  };
}

const NO_BUDGETS: Billable['budgets'] = [];

/** Time for a settlement to become durable after the last moment a call can end, across a database restart. */
const LOCK_MARGIN_MS = 60_000;

/**
 * A refused lock as billing takes it: the call without the candidates that the balance or the limit does not
 * afford, so that a dear fallback does not refuse what the first choice can serve, or the error that the consumer
 * sees.
 */
export function refuseLock(call: Call, refusal: Extract<LockResult, { ok: false }>): Call | Error {
  const estimated = formatUsd(
    call.candidates.reduce((most, { estimate }) => (estimate > most ? estimate : most), 0n) + call.lendable,
  );
  switch (refusal.reason) {
    case 'no_account': {
      const free = call.candidates.filter(({ estimate }) => estimate + call.lendable === 0n);
      if (free.length > 0) return { ...call, candidates: free };
      return new GatewayError(
        'escrow_not_setup',
        'Escrow account not set up: this account was never funded. Ask the operator for credit, or fund it, then retry',
      );
    }
    case 'insufficient': {
      const affordable = call.candidates.filter(({ estimate }) => estimate + call.lendable <= refusal.available);
      if (affordable.length > 0 && affordable.length < call.candidates.length)
        return { ...call, candidates: affordable };
      return new GatewayError('insufficient_balance', `Insufficient balance for estimated cost: ${estimated} USDC`);
    }
    case 'budget_exceeded': {
      const { limit, spent, locked } = refusal.budget;
      const room = limit - spent - locked;
      const affordable = call.candidates.filter(({ estimate }) => estimate + call.lendable <= room);
      if (affordable.length > 0) return { ...call, candidates: affordable };
      return budgetError(call.caller, refusal.budget, `estimated cost: ${estimated} USDC`);
    }
    case 'parent_over':
      return new GatewayError(
        'permission_denied',
        'The call that this one was made under is over: nothing more can be paid from its budget',
      );
    case 'parent_exhausted': {
      const affordable = call.candidates.filter(({ estimate }) => estimate + call.lendable <= refusal.available);
      if (affordable.length > 0 && affordable.length < call.candidates.length)
        return { ...call, candidates: affordable };
      return new GatewayError(
        'insufficient_balance',
        `The budget of the run is too low for estimated cost: ${estimated} USDC; ${formatUsd(refusal.available)} USDC are left of it`,
      );
    }
    case 'too_deep':
      return new GatewayError('permission_denied', 'Calls are made under calls at most 8 deep');
    case 'duplicate':
      return new GatewayError('internal', `Call id ${call.id} was used before`);
  }
}
