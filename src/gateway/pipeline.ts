import type { IncomingHttpHeaders } from 'node:http';
import { randomBytes } from 'node:crypto';
import { GatewayError } from '#wire';
import {
  cost,
  formatUsd,
  isPriced,
  type Billable,
  type Frame,
  type LockResult,
  type MicroUsd,
  type Price,
  type Usage,
} from '#billing';
import type { Primitive } from '#config';
import { visitorOf } from './anonymous.ts';
import type { Call, Caller, Candidate, Handler, Offer } from './call.ts';
import type { CallRequest, ChargeCap } from './call-request.ts';
import type { Catalog, Resolved } from './catalog/catalog.ts';
import { resolveAny } from './catalog/resolve-any.ts';
import { rateLimitError } from './limits/rate-headers.ts';
import type { RateDecision, RateLimiter, RatePolicy } from './limits/limiter.ts';
import type { CallObserver } from './observer.ts';
import type { Arrivals } from './routing/arrivals.ts';
import { refuseRaise } from './routing/refuse-raise.ts';
import type { Health, Router } from './routing/router.ts';

export interface Admission {
  readonly caller: Caller;
  readonly rate: RateDecision;
}

/** authenticate → resolve → authorise → limit → bill → execute. One object for every protocol. */
export interface Pipeline {
  /**
   * Authenticates and counts one request against the caller's limits. `address` is the client's; `calls`: calls are
   * made here, so that agents that act under a running call are let in too, and, where calls can be paid for in
   * place, those without a credential. Throws GatewayError `unauthorized`, `rate_limit_exceeded`,
   * `permission_denied`.
   */
  admit(headers: IncomingHttpHeaders, address: string, calls?: boolean): Promise<Admission>;
  /**
   * Whoever asks for what needs no credential: the account whose credential holds, else the network that it comes
   * from. Nothing is counted.
   */
  visitor(headers: IncomingHttpHeaders, address: string): Promise<Caller>;
  /**
   * Counts requests that admit() did not: those of a batch, and of visitors. Throws GatewayError `rate_limit_exceeded`.
   */
  count(caller: Caller, requests: number): Promise<void>;
  /**
   * Resolves the target to priced candidates and authorises the caller for them. `id` is of newCallId, where it had
   * to be known before. While all providers are away it waits for one to return. Rejects with GatewayError
   * `invalid_model`, `permission_denied`, `no_provider_healthy`.
   */
  prepare(request: CallRequest, id?: string): Promise<Call>;
  /**
   * For doors that resolve a name before prepare: settles when it is known here if any gateway of the database
   * knows it. null where there is nothing to wait for.
   */
  lookUp(name: string, primitive: Primitive): Promise<void> | null;
  /**
   * Locks, forwards and settles; a free call is only forwarded. Iterate to the end; abort `signal` when the client
   * is gone. Throws GatewayError before or during the stream. The last frame is `settled`.
   */
  run(call: Call, signal: AbortSignal): AsyncIterable<Frame, void, undefined>;
  /** Calls in flight, for shutdown and metrics. */
  inFlight(): number;
}

export interface PipelineOptions {
  readonly authenticate: (headers: IncomingHttpHeaders, address: string, calls?: boolean) => Caller | Promise<Caller>;
  readonly limiter: RateLimiter;
  readonly policy: (caller: Caller) => RatePolicy;
  readonly onRateLimited: (of: 'requests' | 'tokens') => void;
  readonly catalog: Catalog;
  readonly router: Router;
  readonly health: Health;
  readonly arrivals: Arrivals;
  /** Registry.catchUp. Default: this gateway is alone. */
  readonly catchUp?: () => Promise<void> | null;
  readonly attemptsMax: number;
  readonly callTimeoutMs: number;
  /** bill(execute). */
  readonly billed: Handler;
  /** free(execute). */
  readonly unbilled: Handler;
  readonly observer: CallObserver;
  readonly now: () => number;
  /** Milliseconds that only go on, whatever the machine's clock is set to. */
  readonly elapsed: () => number;
}

export function createPipeline(options: PipelineOptions): Pipeline {
  const { catalog, router, now } = options;
  return {
    lookUp: (name, primitive) => (catalog.knows(name, primitive) ? null : (options.catchUp?.() ?? null)),
    inFlight: options.observer.inFlight,
    run(call, signal) {
      if (call.free !== null) return options.unbilled(call, signal);
      return call.outlivesClient ? toTheEnd(options.billed(call, NEVER)) : options.billed(call, signal);
    },

    async admit(headers, address, calls) {
      const caller = await options.authenticate(headers, address, calls);
      // What a call uses is known at its end and counted then; to begin, there must be a token left.
      const rate = await options.limiter.take(limitedAs(caller), options.policy(caller), ONE_REQUEST);
      if (!rate.allowed) {
        options.onRateLimited(rate.requests.remaining < 1 ? 'requests' : 'tokens');
        throw rateLimitError(rate);
      }
      return { caller, rate };
    },

    visitor: (headers, address) => visitorOf(options.authenticate, headers, address),

    async count(caller, requests) {
      const rate = await options.limiter.take(limitedAs(caller), options.policy(caller), { requests, tokens: 0 });
      if (rate.allowed) return;
      options.onRateLimited('requests');
      throw rateLimitError(rate);
    },

    async prepare(request, id = newCallId()) {
      const candidates: Candidate[] = [];
      let service: string | null = null;
      let offered: readonly Offer[] = [];
      let unfit: GatewayError | null = null;
      const ownPrice = request.price !== undefined && !request.free;
      /** null for an offer that cannot do what is asked; another one may. */
      const quote = (offer: Offer): Candidate | null => {
        try {
          const price = request.price?.(offer) ?? offer.price;
          if (offer.raised !== undefined && !request.free) refuseRaise(offer, request, price.rates, now);
          return { offer, price, estimate: request.free ? 0n : estimate(price, request.estimate(offer)) };
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
          unfit ??= error;
          return null;
        }
      };
      // All are looked up before any is chosen from, as choosing may give this call the one try at an offer that
      // has cooled down.
      const resolve = () => resolveAny(catalog, request.targets, request.primitive);
      let targets: readonly Resolved[];
      try {
        targets = resolve();
      } catch (error) {
        const known = options.catchUp?.() ?? null;
        if (known === null) throw error;
        await known;
        targets = resolve();
      }
      for (const resolved of targets) authorise(request.caller, resolved.service);
      const all = targets.length === 1 ? targets[0]!.offers : targets.flatMap(({ offers }) => offers);
      const arrival = options.arrivals.waitFor(all);
      if (arrival !== null) {
        if (!(await arrival)) throw unavailable(request, all, options.health);
        // Whoever returned may have other prices now.
        targets = resolve();
      }
      for (const resolved of targets) {
        service ??= resolved.service;
        offered = offered.length === 0 ? resolved.offers : [...offered, ...resolved.offers];
        if (candidates.length >= options.attemptsMax) continue;
        const preferences = resolved.sort ? { ...request.preferences, sort: resolved.sort } : request.preferences;
        // A part of a service may cost something else than the whole: then it is what this call costs that offers
        // are weighed by.
        const quotes = ownPrice ? new Map(resolved.offers.map((offer) => [offer, quote(offer)])) : null;
        const fit = quotes ? resolved.offers.filter((offer) => quotes.get(offer) !== null) : resolved.offers;
        const costOf = quotes ? (offer: Offer) => quotes.get(offer)!.estimate : undefined;
        for (const offer of router.choose(
          fit,
          preferences,
          request.stickyKey,
          request.images,
          costOf,
          request.caller.account,
        )) {
          if (candidates.length >= options.attemptsMax) break;
          const candidate = quotes ? quotes.get(offer)! : quote(offer);
          if (candidate) candidates.push(candidate);
          else options.health.notProbed(offer, request.caller.account);
        }
      }
      if (candidates.length === 0) throw unfit ?? unavailable(request, offered, options.health);
      const budget = request.budget ?? null;
      const served = request.free || budget !== null ? candidates : lendingAlike(candidates);
      const call: Call = {
        id,
        primitive: request.primitive,
        caller: request.caller,
        requestId: request.requestId,
        service: service!,
        stream: request.stream,
        startedAt: now(),
        begunAt: options.elapsed(),
        candidates: served,
        exchange: request.exchange,
        operation: request.operation ?? null,
        free: request.free ?? null,
        continues: request.continues ?? null,
        parent: request.parent ?? request.caller.run?.parent ?? null,
        lendable: request.free ? 0n : lendable(served, budget),
        stickyKey: request.stickyKey,
        metadata: request.metadata,
        ...(request.facts === undefined ? {} : { facts: request.facts }),
        traceparent: request.traceparent,
        timeoutMs: request.timeoutMs ?? options.callTimeoutMs,
        wantsReceipt: request.wantsReceipt,
        ...(request.payment ? { payment: request.payment } : {}),
        ...(request.outlivesClient ? { outlivesClient: true } : {}),
      };
      call.exchange.begin?.(call);
      return call;
    },
  };
}

const NEVER = new AbortController().signal;

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

/** What a caller's rate is counted under: those without a credential by where they come from, whoever pays. */
export function limitedAs(caller: Caller): string {
  const { from } = caller.anonymous ?? caller.paying ?? NOWHERE;
  return from === undefined ? (caller.key?.hash ?? caller.account) : `anonymous:${from}`;
}

const NOWHERE: { readonly from?: string } = {};

/** The most a call can cost at a price; never 0 where anything is priced, so that no work is free by rounding. */
function estimate({ rates }: Price, most: Usage | ChargeCap): MicroUsd {
  const amount = 'costMax' in most ? most.costMax : cost(rates, most);
  return amount === 0n && isPriced(rates) ? 1n : amount;
}

const nestedMaxOf = ({ offer }: Candidate): MicroUsd => offer.agent?.nestedMax ?? 0n;

/**
 * Those that may spend as much of their own as the first choice: nobody is to get what only another one asks for on
 * its page.
 */
function lendingAlike(candidates: readonly Candidate[]): readonly Candidate[] {
  const most = nestedMaxOf(candidates[0]!);
  return candidates.every((candidate) => nestedMaxOf(candidate) === most)
    ? candidates
    : candidates.filter((candidate) => nestedMaxOf(candidate) === most);
}

/**
 * What is locked for calls under this one. Throws GatewayError `unprocessable` for a budget that this call alone
 * exceeds.
 */
function lendable(candidates: readonly Candidate[], budget: MicroUsd | null): MicroUsd {
  if (budget === null) return nestedMaxOf(candidates[0]!);
  const own = candidates.reduce((most, { estimate }) => max(most, estimate), 0n);
  if (budget >= own) return budget - own;
  throw new GatewayError(
    'unprocessable',
    `The budget of ${formatUsd(budget)} USDC is less than what this call alone may cost: ${formatUsd(own)} USDC`,
    {
      param: 'max_cost',
    },
  );
}

const max = (one: MicroUsd, other: MicroUsd): MicroUsd => (one > other ? one : other);

/**
 * Throws GatewayError `permission_denied` for a service that the caller's key may not use. `prepare` does it for
 * every call: this is for what is answered without one.
 */
export function authorise(caller: Pick<Caller, 'key'>, service: string): void {
  const allowed = caller.key?.allowedServices;
  if (allowed && !allowed.includes(service)) {
    throw new GatewayError(
      'permission_denied',
      `This API key may not use ${service}. It is limited to: ${allowed.slice(0, 20).join(', ')}`,
      {
        param: 'model',
      },
    );
  }
}

/** Providers that an error names. */
const PROVIDERS_SHOWN = 10;

function unavailable(request: CallRequest, offered: readonly Offer[], health: Health): GatewayError {
  const name = request.targets[0]!.slice(0, 128);
  const { order, only, ignore, maxPrice } = request.preferences;
  const { account } = request.caller;
  const unasked = maxPrice === null && order.length + only.length + ignore.length === 0;
  if (unasked && offered.some((offer) => health.available(offer, account))) {
    const message = `No provider of ${name} at about its usual price is healthy at the moment. Others ask for much more: name one in provider.order, or accept its price with provider.max_price`;
    return new GatewayError('no_provider_healthy', message, { retryAfterS: health.retryAfterS(offered, account) });
  }
  if (offered.some((offer) => health.available(offer, account))) {
    const names = [...new Set(offered.map(({ provider }) => provider.name))].slice(0, PROVIDERS_SHOWN).join(', ');
    return new GatewayError(
      'not_found',
      `No provider of ${name} meets the routing preferences (order, only, ignore, max_price). It is offered by ${names}`,
      {
        param: 'provider',
      },
    );
  }
  return new GatewayError('no_provider_healthy', `No provider of ${name} is healthy at the moment`, {
    retryAfterS: health.retryAfterS(offered, account),
  });
}

/**
 * What billing needs of a call. `graceMs`: the longest that a call can go on after its clock has ended it, for its
 * drain or for a client that takes nothing.
 */
export function toBillable(call: Call, graceMs: number): Billable {
  return {
    id: call.id,
    account: call.caller.account,
    quotes: call.candidates.map((candidate) => ({ price: candidate.price, estimate: candidate.estimate })),
    budget: call.caller.key?.budget ?? null,
    lockExpiresAt: call.startedAt + call.timeoutMs + graceMs + LOCK_MARGIN_MS,
    lockDetail: JSON.stringify({
      primitive: call.primitive,
      service: call.service,
      ...(call.operation === null ? {} : { operation: call.operation }),
      ...(call.continues === null ? {} : { continues: call.continues }),
      ...(call.parent === null ? {} : { parent: call.parent }),
      key: call.caller.key?.hash ?? null,
      // As the wallet signed it: its account is one on every network.
      ...(call.caller.wallet === null ? {} : { caip10: call.caller.wallet.caip10 }),
      requestId: call.requestId,
      stream: call.stream,
    }),
    ceiling: true,
    continues: call.continues,
    parent: call.parent,
    lendable: call.lendable,
  };
}

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
      // What is left of the limit is not told: the dearest goes, and the rest is asked for again.
      const dearest = call.candidates.reduce((most, { estimate }) => (estimate > most ? estimate : most), 0n);
      const cheaper = call.candidates.filter(({ estimate }) => estimate < dearest);
      if (cheaper.length > 0) return { ...call, candidates: cheaper };
      return new GatewayError(
        'insufficient_balance',
        `Spending limit of this API key is too low for estimated cost: ${estimated} USDC`,
      );
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

const idPrefix = `gen-${randomBytes(9).toString('base64url').replaceAll('-', 'A').replaceAll('_', 'B')}`;
let idCounter = 0;

/** Unique over all processes: a random prefix per process and a counter, cheaper than a UUID a call. */
export function newCallId(): string {
  return `${idPrefix}${(idCounter++).toString(36).padStart(6, '0')}`;
}
