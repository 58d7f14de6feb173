import type { IncomingHttpHeaders } from 'node:http';
import { after, NEVER_ABORTED, orElse } from '#wire';
import type { LockRequest } from '#billing';
import type { Frame, CancelSignal, ReplyPiece, Price } from '#billing/amounts';
import type { Primitive } from '#config';
import {
  ACCOUNT_HEADER,
  type AccountStates,
  mayAsk,
  nobodyActs,
  spends,
  type Authenticate,
  type Caller,
  anonymousAt,
  refuseStopped,
  memberOf,
} from '#accounts';
import { type Admission, type CallerRatesOptions, createCallerRates } from '#limits';
import { hasCredentials } from '#http';
import type { Call, Candidate, Handler, CallRequest, CallObserver } from './call.ts';
import { asksFor, unasked } from './ask-first.ts';
import { mostOf } from './lock-payments.ts';
import { prepareCall, type PrepareOptions } from './prepare.ts';
import { releaseProbes } from './routing/router.ts';

/** authenticate → resolve → authorise → limit → bill → execute. One object for every protocol. */
export interface Pipeline {
  /**
   * Authenticates the caller and counts one request against its rate limits. A member who acts for another account is
   * counted under its own account. `address`: the client's address. `calls`: true on routes where calls are made. Such
   * routes also accept run tokens and, where a call can be paid for in place, clients without a credential. Throws or
   * rejects with GatewayError `unauthorized`, `rate_limit_exceeded`, `permission_denied`, `not_found`.
   */
  admit(headers: IncomingHttpHeaders, address: string, calls?: boolean): Admission | Promise<Admission>;
  /**
   * The same as admit(), for a request that polls the state of work. Polls have rate limits of the same size but
   * separate counters, so a client that waits for a call does not use up its rate for calls.
   */
  admitPoll: Pipeline['admit'];
  /**
   * The same as admit(), for a request that estimates the tokens of a prompt. These have separate counters too. A
   * member cannot act for another account.
   */
  admitCount(headers: IncomingHttpHeaders, address: string): Admission | Promise<Admission>;
  /**
   * The caller of a request that needs no credential: the account of a valid credential, else the client's network.
   * Nothing is counted.
   */
  visitor(headers: IncomingHttpHeaders, address: string): Caller | Promise<Caller>;
  /**
   * Counts requests that admit() does not count: the entries of a batch, and requests of visitors. Throws GatewayError
   * `rate_limit_exceeded`.
   */
  count(caller: Caller, requests: number): Promise<void>;
  /** Counts a new key of the caller's account. Throws GatewayError `rate_limit_exceeded`. */
  countNewKey(caller: Caller): Promise<void>;
  /**
   * Resolves the target to priced candidates and checks that the caller may use them. `id`: a newCallId(), for a caller
   * that has to know the id beforehand. While all providers are away, it waits for one to return. Throws or rejects
   * with GatewayError `invalid_model`, `permission_denied`, `no_provider_healthy`.
   */
  prepare<R, D extends ReplyPiece>(request: CallRequest<R, D>, id?: string): Call<R, D> | Promise<Call<R, D>>;
  /**
   * For work on a request before its call, such as measuring its file. `request`: the least that it can be. Rejects as
   * the call would if the model is not there, or if the caller cannot pay for it. Resolves with the share of the work:
   * the account, or one that all accounts without money have together. Nothing is locked and nothing is paid.
   */
  shareOf(request: CallRequest): Promise<string>;
  /**
   * For routes that resolve a name before prepare. Resolves once this gateway has read the names that other gateways of
   * the database registered, or after a short time limit. null if the name is known already, or if there is nothing to
   * wait for.
   */
  lookUp(name: string, primitive: Primitive): Promise<void> | null;
  /**
   * Locks, forwards and settles. A free call is only forwarded. Iterate to the end; abort `signal` when the client
   * leaves. Throws GatewayError before or during the stream. The last frame is `settled`.
   */
  run<R, D extends ReplyPiece>(call: Call<R, D>, signal: CancelSignal): AsyncIterable<Frame<R, D>, void, undefined>;
  /** Calls in flight, for shutdown and metrics. */
  inFlight(): number;
}

interface PipelineOptions extends PrepareOptions, CallerRatesOptions {
  readonly authenticate: Authenticate;
  /** The caller as a member that acts for the account of ACCOUNT_HEADER. Default: nobody acts for another account. */
  readonly act?: (headers: IncomingHttpHeaders, own: Caller) => Promise<Caller>;
  /** Accounts that the operator has frozen or closed make no new calls. Default: all accounts are open. */
  readonly states?: AccountStates;
  /** LockPayments.canPay. Default: everybody can. */
  readonly canPay?: (call: Call) => Promise<boolean>;
  /** bill(execute). */
  readonly billed: Handler;
  /** free(execute). */
  readonly unbilled: Handler;
  readonly observer: CallObserver;
}

/** The share of accounts without money: whoever they are, they get together what one account gets. */
const UNPAID = '';

export function createPipeline(options: PipelineOptions): Pipeline {
  const { catalog, states } = options;
  const rates = createCallerRates(options);

  /**
   * Runs after the rate limit, because it reads from the database for which accounts a caller may act, and anybody can
   * send such a request.
   */
  const acting = async (
    headers: IncomingHttpHeaders,
    admission: Admission | Promise<Admission>,
    take: (caller: Caller) => Admission | Promise<Admission>,
  ): Promise<Admission> => {
    const { caller, rate } = await admission;
    if (options.act === undefined) throw nobodyActs();
    const acted = await options.act(headers, caller);
    // A call counts for the account that pays too.
    return spends(headers) ? take(acted) : { caller: acted, rate };
  };

  /** After the rate of the caller: a caller that is refused uses nothing of what its network has left for others. */
  const withNetwork = (
    admission: Admission | Promise<Admission>,
    address: string,
    kind?: 'polls' | 'counts',
  ): Admission | Promise<Admission> => after(admission, (admitted) => rates.takeUnfunded(admitted, address, kind));

  /** Refuses a member that acts for another account. After the rate limit, so that the refusals are limited too. */
  const alone = (headers: IncomingHttpHeaders, admission: Admission | Promise<Admission>) => {
    if (headers[ACCOUNT_HEADER] === undefined) return admission;
    return Promise.resolve(admission).then(() => {
      throw nobodyActs();
    });
  };

  const pipeline: Pipeline = {
    lookUp: (name, primitive) => (catalog.knows(name, primitive) ? null : (options.catchUp?.() ?? null)),
    inFlight: options.observer.inFlight,
    run<R, D extends ReplyPiece>(call: Call<R, D>, signal: CancelSignal) {
      // The stages between carry what the call's own adapter gives, whatever it is.
      return runStages(options, call, signal) as AsyncIterable<Frame<R, D>, void, undefined>;
    },

    admit(headers, address, calls) {
      const take = (caller: Caller) => rates.take(caller, calls);
      const admission = after(options.authenticate(headers, address, calls), take);
      return withNetwork(headers[ACCOUNT_HEADER] === undefined ? admission : acting(headers, admission, take), address);
    },
    admitPoll(headers, address, calls) {
      const admission = after(options.authenticate(headers, address, calls), rates.takePoll);
      return withNetwork(
        headers[ACCOUNT_HEADER] === undefined ? admission : acting(headers, admission, rates.takePoll),
        address,
        'polls',
      );
    },

    admitCount(headers, address) {
      // A caller without a valid credential gets the same 401 as at every address that makes no calls.
      const counted = (caller: Caller) =>
        caller.anonymous
          ? pipeline.admit(headers, address)
          : withNetwork(alone(headers, rates.takeCount(caller)), address, 'counts');
      return after(pipeline.visitor(headers, address), counted);
    },

    visitor: (headers, address) => visitorOf(options.authenticate, headers, address),

    count: rates.takeMore,
    countNewKey: rates.takeNewKey,

    async shareOf(request) {
      // The cap of a quoted call is for the price of its quote.
      const original = request.quote ? (request.cap?.cappedRequest ?? request) : request;
      // The call itself is asked for, once its cost is known.
      const { content: _content, ...caller } = original.caller;
      const call = await pipeline.prepare({ ...original, caller, quote: null });
      releaseProbes(options.health, call);
      // A quote may be lower than the price of today.
      const least = request.quote
        ? { ...call, candidates: call.candidates.map((one) => ({ ...one, estimate: 1n })) }
        : call;
      const hasMoney = (await options.canPay?.(least)) ?? true;
      return hasMoney ? request.caller.account : UNPAID;
    },

    prepare<R, D extends ReplyPiece>(request: CallRequest<R, D>, id?: string) {
      const stopped = states && isNew(request) ? refuseStopped(states, request.caller.account) : null;
      return after(stopped, (error) => {
        if (error !== null) throw error;
        // The prepared call has the adapter of its request.
        return prepareCall(options, request, id) as Call<R, D> | Promise<Call<R, D>>;
      });
    },
  };
  return pipeline;
}

function runStages({ billed, unbilled }: PipelineOptions, call: Call, signal: CancelSignal): ReturnType<Handler> {
  if (call.free !== null) return unbilled(call, signal);
  if (mayAsk(call.caller) && call.approval === undefined && call.parent === null && call.continues === null) {
    const most = mostOf(call);
    if (asksFor(call.caller, most)) throw unasked(call.caller, most, 'it is not one request');
  }
  return call.outlivesClient ? toTheEnd(billed(call, NEVER_ABORTED)) : billed(call, signal);
}

/**
 * Whether a request begins something new. Not new is what belongs to a call or run that goes on, because its money is
 * locked already. Free methods only list things, and look at tasks.
 */
const isNew = ({ caller, free, parent, continues }: CallRequest): boolean =>
  !free && !parent && !continues && caller.run === undefined && !caller.anonymous;

/** The frames of a call. When the consumer stops reading, the rest is still read here, to the end. */
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
    // Errors are ignored here: the billing middleware has already reported them.
    while (!over)
      over = await iterator.next().then(
        ({ done }) => done === true,
        () => true,
      );
  }
}

/**
 * The lock of a call: the highest estimate of its candidates, and what it lends. `graceMs`: the longest time in
 * milliseconds that a call can go on after its timeout, to drain the provider's reply or because the client does not
 * read.
 */
export function lockOf(call: Call, graceMs: number): LockRequest {
  const own: LockRequest = {
    id: call.id,
    account: call.caller.account,
    amount: mostOf(call),
    lendable: call.lendable,
    endsWithCall: call.adapter.endsWithCall === true && call.lendable === 0n,
    prices: priceIdsOf(call.candidates),
    budgets: call.caller.budgets ?? NO_BUDGETS,
    // Rounded up because the remaining time of a call in a run has fractions of a millisecond.
    expiresAt: Math.ceil(call.startedAt + longestLockMs(call.timeoutMs, graceMs)),
    // JSON.stringify leaves out undefined members.
    detail: JSON.stringify({
      primitive: call.primitive,
      service: call.service,
      operation: call.operation ?? undefined,
      continues: call.continues ?? undefined,
      parent: call.parent ?? undefined,
      key: call.caller.key?.hash ?? null,
      member: memberOf(call.caller),
      // The id that the wallet signed, with its network. The account is the same on every network.
      caip10: call.caller.wallet?.caip10,
      requestId: call.requestId,
      session: call.session,
      stream: call.stream,
      tags: call.tags,
    }),
  };
  return call.parent === null ? own : { ...own, parent: call.parent };
}

function priceIdsOf(candidates: readonly Candidate[]): string[] {
  if (candidates.length === 1 && candidates[0]!.serviceTiers === undefined) return [candidates[0]!.price.id];
  return candidates.flatMap((candidate) => pricesOf(candidate).map(({ id }) => id));
}

/** The prices by which a call may be settled at a candidate, that of the asked service tier first. */
export function pricesOf({ price, serviceTiers }: Candidate): readonly Price[] {
  if (serviceTiers === undefined) return [price];
  return [price, ...Object.values(serviceTiers).filter(({ id }) => id !== price.id)];
}

const NO_BUDGETS: NonNullable<LockRequest['budgets']> = [];

/**
 * Milliseconds between the latest possible end of a call and the expiry of its lock. In this time its settlement can
 * become durable, even across a restart of the database.
 */
const LOCK_MARGIN_MS = 60_000;

/** Milliseconds that a lock lives at most, if it is not kept for a task. */
export const longestLockMs = (callTimeoutMs: number, graceMs: number): number =>
  callTimeoutMs + graceMs + LOCK_MARGIN_MS;

/** The caller of a request that needs no credential, see Pipeline.visitor. */
function visitorOf(
  authenticate: Authenticate,
  headers: IncomingHttpHeaders,
  address: string,
): Caller | Promise<Caller> {
  // A caller with an invalid credential counts as a stranger here. Routes that need a credential report what is wrong
  // with it.
  const stranger = () => anonymousAt(address);
  if (!hasCredentials(headers)) return stranger();
  return orElse(() => authenticate(headers, address, true), stranger);
}
