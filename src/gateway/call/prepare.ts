import { after } from '#wire';
import { GatewayError } from '#errors';
import type { Primitive } from '#config';
import { printable } from '#security';
import {
  isPriced,
  maxRateOf,
  variesByCall,
  costAtMost,
  formatUsd,
  type Meter,
  type MicroUsd,
  type Price,
  ratesToUsd,
  TOKEN_PARTS,
  type Usage,
} from '#billing/amounts';
import {
  batchPriceOf,
  type Offer,
  type Catalog,
  type Resolved,
  namesToCompare,
  nearestHint,
  otherEndpoint,
  resolveAny,
  serviceTiersOf,
  type Health,
} from '#catalog';
import { type Access, countedByTags, type EndUsers, type OwnKeys, tagsOfCall, userOf } from '#accounts';
import { type AskFirst, prepareAsking } from './ask-first.ts';
import { type Call, type Candidate, type CallRequest, type ChargeCap, newCallId, type RequestedQuote } from './call.ts';
import { atQuote, refuseDearer, type Quotes } from './quotes.ts';
import { unsummedError } from './lock-payments.ts';
import type { PromptPrefix } from './affinity.ts';
import type { Arrivals } from './routing/arrivals.ts';
import { rejectPriceIncrease } from './cost-cap.ts';
import { atOwnKey, ownEndpoint, type OwnKeyCalls, ownKeysFor } from './own-keys.ts';
import { lacking, takingAll, unavailable } from './routing/no-offer.ts';
import { planAttempts } from './routing/attempt-plan.ts';
import { releaseProbes, type Router } from './routing/router.ts';

interface CallTimes {
  readonly callTimeoutMs: number;
  readonly now: () => number;
  /** A monotonic clock in milliseconds: it ignores changes of the machine's clock. */
  readonly elapsed: () => number;
  /** How records of calls name end users. Default: by a digest. */
  readonly endUsers?: EndUsers;
}

export interface PrepareOptions extends CallTimes {
  readonly catalog: Catalog;
  readonly router: Router;
  readonly health: Health;
  readonly arrivals: Arrivals;
  /** Registry.catchUp. Default: this gateway is alone. */
  readonly catchUp?: () => Promise<void> | null;
  /** Default: this gateway gives no quotes. */
  readonly quotes?: Quotes;
  /** Needed for keys with `askAbove`. */
  readonly askFirst?: AskFirst;
  /** Default: no call uses a key of its consumer. */
  readonly ownKeys?: OwnKeyCalls;
  readonly attemptsMax: number;
}

/** Turns a request into a call with priced candidates, see Pipeline.prepare. */
export function prepareCall(
  options: PrepareOptions,
  request: CallRequest,
  id: string = newCallId(),
): Call | Promise<Call> {
  refuseUnstorable(request);
  if (request.caller.content === undefined || !isAsked(request)) return prepareQuoted(options, request, id);
  return prepareAsking(asking(options), (accepted, callId) => prepareQuoted(options, accepted, callId), request, id);
}

/** Control characters and halves of surrogate pairs: not every database stores them, and lists hide them. */
const UNSTORABLE = /[\p{Cc}\p{Cs}]/u;

/** The expression is slow for its first calls, and most names are plain ASCII. */
function isUnstorable(name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code < 0x20 || code > 0x7e) return UNSTORABLE.test(name);
  }
  return false;
}

/** Throws GatewayError `invalid_request` for a name of a call that its record cannot have. */
function refuseUnstorable({ targets, operation, session }: CallRequest): void {
  for (const name of targets) if (isUnstorable(name)) throw unstorable('service', name);
  if (operation && isUnstorable(operation)) throw unstorable('tool', operation);
  if (session !== undefined && isUnstorable(session)) throw unstorable('session', session);
}

const unstorable = (kind: string, name: string) =>
  new GatewayError(
    'invalid_request',
    `The name of the ${kind} has a control character or half of a surrogate pair, which cannot be stored: ${printable(name)}`,
  );

/** Whether a person may have to accept a request. What is free, or paid from a lock that was accepted, needs nobody. */
const isAsked = ({ free, parent, continues }: CallRequest): boolean => !free && !parent && !continues;

function asking({ quotes, askFirst, health, now, endUsers = 'digest' }: PrepareOptions) {
  if (quotes === undefined || askFirst === undefined) throw new Error('this gateway can ask nobody');
  return { ...askFirst, quotes, health, now, endUsers };
}

const prepareQuoted = (options: PrepareOptions, request: CallRequest, id: string): Call | Promise<Call> =>
  request.quote && !request.free ? byQuote(options, request, request.quote, id) : prepareUnquoted(options, request, id);

function prepareUnquoted(options: PrepareOptions, request: CallRequest, id: string): Call | Promise<Call> {
  const call = after(resolve(options, request), (targets) =>
    after(ownKeysFor(options.ownKeys, request, offersOf(targets)), (keys) =>
      prepared(options, request, id, { targets, keys }),
    ),
  );
  return request.room === undefined ? call : withRoom(options, call, request.room);
}

/**
 * Turns a request into a call at one candidate, whose money is locked already. Nothing is looked up, chosen or refused.
 */
export const resumeCall = (options: CallTimes, request: CallRequest, id: string, candidate: Candidate): Call =>
  toCall(options, request, id, candidate.offer.service, [candidate], null);

/** A call that uses a quote. Rejects with GatewayError `not_found`, `quote_expired`, `quote_used`, `quote_mismatch`. */
async function byQuote(
  options: PrepareOptions,
  request: CallRequest,
  requestedQuote: RequestedQuote,
  id: string,
): Promise<Call> {
  const { quotes, health } = options;
  try {
    if (quotes === undefined)
      throw new GatewayError('not_found', 'This gateway gives no quotes', { param: 'quote_id' });
    const quote = await quotes.find(requestedQuote.id, request.caller);
    const call = await prepareUnquoted(options, atQuote(request, quote), id);
    try {
      refuseDearer(call, quote);
      await quotes.claim(quote.id, id);
    } catch (error) {
      releaseProbes(health, call);
      throw error;
    }
    return { ...call, quote: quote.id };
  } catch (error) {
    if (requestedQuote.implied && error instanceof GatewayError) return prepareUnquoted(options, request, id);
    throw error;
  }
}

/** Returns the call once the caller has room for what the call makes, see CallRequest.room. */
async function withRoom(
  { health }: PrepareOptions,
  prepared: Call | Promise<Call>,
  room: (call: Call) => Promise<void>,
): Promise<Call> {
  const call = await prepared;
  try {
    await room(call);
  } catch (error) {
    releaseProbes(health, call);
    throw error;
  }
  return call;
}

interface ResolvedServices {
  readonly targets: readonly Resolved[];
  readonly keys: OwnKeys | null;
}

function prepared(options: PrepareOptions, request: CallRequest, id: string, resolved: ResolvedServices): Call {
  const prefix = prefixOf(request, resolved.targets);
  const candidates = choose(options, request, resolved, prefix);
  const call = toCall(options, request, id, resolved.targets[0]!.service, candidates, prefix);
  const unsummed = call.free === null ? unsummedError(call.caller) : null;
  if (unsummed !== null) {
    releaseProbes(options.health, call);
    throw unsummed;
  }
  call.adapter.begin?.(call);
  return call;
}

/**
 * Looks up all names before any offer is chosen, because choosing an offer that has cooled down gives its one trial
 * request to this call. Waits for the registry and for providers that are away.
 */
function resolve(options: PrepareOptions, request: CallRequest): readonly Resolved[] | Promise<readonly Resolved[]> {
  let targets: readonly Resolved[];
  try {
    targets = lookUp(options, request);
  } catch (error) {
    const known = options.catchUp?.() ?? null;
    if (known === null) throw withNearest(options, request, error);
    return known.then(() => {
      try {
        targets = lookUp(options, request);
      } catch (still) {
        throw withNearest(options, request, still);
      }
      return present(options, request, targets);
    });
  }
  return present(options, request, targets);
}

/**
 * Adds a hint to the error of an unknown name: the route that serves the name, or similar names of the same primitive.
 */
function withNearest({ catalog }: PrepareOptions, { primitive, targets }: CallRequest, error: unknown): unknown {
  if (!(error instanceof GatewayError) || error.code !== 'invalid_model') return error;
  const names = namesToCompare(catalog.offers(primitive));
  const [name = ''] = targets;
  const hint = otherEndpoint(name, primitive, catalog) || nearestHint(name, names);
  const { message, param } = error;
  return hint === '' ? error : new GatewayError('invalid_model', `${message}. ${hint}`, { param });
}

const lookUp = ({ catalog }: PrepareOptions, request: CallRequest): readonly Resolved[] =>
  resolveAny(catalog, request.targets, request.primitive);

/** Checks that the caller may use all targets, and waits until a provider of one of them can be reached. */
function present(
  options: PrepareOptions,
  request: CallRequest,
  targets: readonly Resolved[],
): readonly Resolved[] | Promise<readonly Resolved[]> {
  authoriseAll(request, targets);
  const all = offersOf(targets);
  const arrival = options.arrivals.waitFor(all);
  if (arrival === null) return targets;
  return arrival.then((arrived) => {
    if (!arrived) throw unavailable(request, all, options.health);
    // A provider that returned may have other prices now.
    return lookUp(options, request);
  });
}

const offersOf = (targets: readonly Resolved[]): readonly Offer[] =>
  targets.length === 1 ? targets[0]!.offers : targets.flatMap(({ offers }) => offers);

/** The beginning of the prompt, if it matters for the choice: a digest of it is not made for a single offer. */
function prefixOf({ repeats, preferences, caller }: CallRequest, targets: readonly Resolved[]): PromptPrefix | null {
  if (repeats === undefined || preferences.sort !== null) return null;
  for (const { offers } of targets) if (offers.length > 1) return repeats.prefix(caller.account);
  return null;
}

/** The offers to try, in this order (`planAttempts`), each with the most that the call may cost there. */
function choose(
  { router, health, attemptsMax, now, ownKeys }: PrepareOptions,
  request: CallRequest,
  { targets, keys }: ResolvedServices,
  prefix: PromptPrefix | null,
): readonly Candidate[] {
  const { caller, free, stickyKey, images } = request;
  // Whoever has a key wants to use it.
  const prefers =
    keys === null
      ? request.prefers
      : (offer: Offer) => ownEndpoint(offer, keys) !== null || request.prefers?.(offer) === true;
  const models: Candidate[][] = [];
  let resting: Set<Offer> | null = null;
  let unfit: GatewayError | null = null;
  /** null for an offer that cannot serve this request. Another offer may be able to. */
  const quote = (offer: Offer): Candidate | null => {
    try {
      const price = request.price?.(offer) ?? offer.price;
      if (offer.raised !== undefined && !free) rejectPriceIncrease(offer, request, price.rates, now);
      if (free) return { offer, price, estimate: 0n };
      const most = request.estimate(offer);
      refuseAboveMaxPrice(offer, price, most, request.preferences);
      const serviceTiers = serviceTiersOf(offer);
      const endpoint = ownEndpoint(offer, keys);
      const variant = request.variant?.(offer);
      if (endpoint === null) return { offer, price, serviceTiers, estimate: estimate(price, most), variant };
      const own = atOwnKey({ offer, price, serviceTiers }, endpoint, ownKeys!.bps);
      return { offer, ...own, estimate: estimate(own.price, most), variant };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      unfit ??= error;
      return null;
    }
  };
  for (const { offers: all, sort } of targets) {
    const candidates: Candidate[] = [];
    const offers = takingAll(request, all);
    if (offers.length === 0) unfit ??= lacking(request, all);
    const preferences = sort ? { ...request.preferences, sort } : request.preferences;
    // A part of a service may have its own price, and a long prompt, too. With several offers, routing then weighs them
    // by the cost of this call. Otherwise a stranger with a low price for short prompts could get all long ones.
    const weighed =
      !free &&
      offers.length > 1 &&
      (request.price !== undefined || offers.some(({ price }) => variesByCall(price.rates)));
    const quotes = weighed ? new Map(offers.map((offer) => [offer, quote(offer)])) : null;
    const fit = quotes ? offers.filter((offer) => quotes.get(offer) !== null) : offers;
    const costOf = quotes ? (offer: Offer) => quotes.get(offer)!.estimate : undefined;
    const boundPriceOf = preferences.maxPrice === null ? undefined : boundPriceIn(request);
    const routed = { images, costOf, boundPriceOf, account: caller.account, prefers, prefix };
    // Before the router lets this call try an offer again, which makes the offer rest for others.
    if (targets.length > 1)
      for (const offer of fit)
        if (health.healthState(offer, caller.account) === 'resting') (resting ??= new Set()).add(offer);
    for (const offer of router.choose(fit, preferences, stickyKey, routed)) {
      if (candidates.length >= attemptsMax) break;
      const candidate = quotes ? quotes.get(offer)! : quote(offer);
      if (candidate) candidates.push(candidate);
      else health.notProbed(offer, caller.account);
    }
    if (candidates.length > 0) models.push(candidates);
  }
  if (models.length === 0) throw unfit ?? unavailable(request, offersOf(targets), health);
  return planAttempts(
    models,
    attemptsMax,
    ({ offer }) => resting?.has(offer) === true,
    ({ offer }) => health.isProven(offer),
  );
}

/**
 * The price of an offer that `max_price` is compared with before the request is looked at in detail. An answer to a
 * call of another service tier may prove the usual price, but what comes in a batch costs that of batches alone.
 */
const boundPriceIn =
  (request: CallRequest) =>
  (offer: Offer): Price => {
    const batch = batchPriceOf(offer);
    return batch !== undefined && request.price?.(offer) === batch ? batch : offer.price;
  };

function toCall(
  { callTimeoutMs, now, elapsed, endUsers = 'digest' }: CallTimes,
  request: CallRequest,
  id: string,
  service: string,
  candidates: readonly Candidate[],
  prefix: PromptPrefix | null,
): Call {
  const budget = request.budget ?? null;
  const tags = tagsOfCall(request.caller, request, endUsers);
  const served = request.free || budget !== null ? candidates : lendingAlike(candidates);
  return {
    id,
    primitive: request.primitive,
    caller: request.free ? request.caller : countedByTags(request.caller, tags),
    requestId: request.requestId,
    session: request.session ?? userOf(request.metadata).session,
    service,
    stream: request.stream,
    startedAt: now(),
    begunAt: elapsed(),
    candidates: served,
    adapter: request.adapter,
    operation: request.operation ?? null,
    free: request.free ?? null,
    continues: request.continues ?? null,
    parent: request.parent ?? request.caller.run?.parent ?? null,
    lendable: request.free ? 0n : lendable(served, budget),
    stickyKey: request.stickyKey,
    prefix,
    metadata: request.metadata,
    tags,
    facts: request.facts,
    traceparent: request.traceparent,
    timeoutMs: request.timeoutMs ?? callTimeoutMs,
    wantsReceipt: request.wantsReceipt,
    payment: request.payment ?? null,
    onLocked: request.onLocked,
    outlivesClient: request.outlivesClient ?? false,
    contentFallbacks: request.preferences.contentFallbacks,
    priced: request.priced,
    memory: request.memory,
  };
}

/**
 * The most a call can cost at a price. At least 1 where anything has a price, so that rounding never makes work free.
 */
function estimate({ rates }: Price, most: Usage | ChargeCap): MicroUsd {
  const amount = 'costMax' in most ? most.costMax : costAtMost(rates, most);
  return amount === 0n && isPriced(rates) ? 1n : amount;
}

/**
 * Throws GatewayError `unprocessable` if a token or a picture in the prompt of this call may cost more than
 * `max_price`. Routing has compared the prices of short prompts only, because it does not know the length of the prompt
 * and what the call asks for.
 */
function refuseAboveMaxPrice(
  { service, provider }: Offer,
  { rates }: Price,
  most: Usage | ChargeCap,
  { maxPrice }: CallRequest['preferences'],
): void {
  if (maxPrice === null || 'costMax' in most) return;
  const refuse = (name: 'prompt' | 'completion' | 'image', meter: Meter, unit: string): void => {
    const limit = maxPrice[name];
    if (limit === undefined || most[meter] === 0n) return;
    const rate = maxRateOf(rates, meter, most.prompt ?? 0n);
    if (rate <= limit) return;
    const [highest, requestedRate] = [limit, rate].map((one) => ratesToUsd({ [meter]: one })[meter]);
    throw new GatewayError(
      'unprocessable',
      `provider.max_price.${name} is ${highest} USD per ${unit}, but ${meter} of this call may cost ${requestedRate} at ${provider.name} (${service})`,
      { param: `provider.max_price.${name}` },
    );
  };
  for (const whole of ['prompt', 'completion'] as const)
    for (const meter of [whole, ...TOKEN_PARTS[whole]]) refuse(whole, meter, '1M tokens');
  // Pictures that a model makes are compared by their own primitive.
  if (most.prompt !== undefined && most.image !== undefined) refuse('image', 'image', 'image');
}

const nestedMaxOf = ({ offer }: Candidate): MicroUsd => offer.agent?.nestedMax ?? 0n;

/**
 * The candidates whose agents may spend the same amount on nested calls as the first choice. Otherwise an agent would
 * get a budget that only another agent's page asks for.
 */
function lendingAlike(candidates: readonly Candidate[]): readonly Candidate[] {
  const most = nestedMaxOf(candidates[0]!);
  return candidates.every((candidate) => nestedMaxOf(candidate) === most)
    ? candidates
    : candidates.filter((candidate) => nestedMaxOf(candidate) === most);
}

/**
 * The amount to lock for calls under this one. Throws GatewayError `unprocessable` if this call alone may cost more
 * than the budget.
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

function authoriseAll({ caller, primitive, operation, free, whole }: CallRequest, targets: readonly Resolved[]): void {
  const access = caller.key?.access;
  if (!access) return;
  // Whoever may call one tool of a server may also ask it for its list.
  const any = primitive === 'tool' && Boolean(free) && whole !== true;
  for (const { service } of targets)
    if (!any || !access.reaches(primitive, service)) authorise(caller, primitive, service, operation ?? null);
}

/**
 * Throws GatewayError `permission_denied` for a service, or its tool `operation`, that the caller's key may not use.
 * `prepare` checks this for every call. Use this function for requests that are answered without a call. `primitive`:
 * see Access.allows.
 */
export function authorise(
  { key }: { readonly key: { readonly access: Access | null } | null },
  primitive: Primitive | null,
  service: string,
  operation: string | null = null,
  param = 'model',
): void {
  const access = key?.access;
  if (!access || access.allows(primitive, service, operation)) return;
  const what = operation === null ? service : `the tool ${printable(operation)} of ${service}`;
  throw new GatewayError('permission_denied', `This API key may not use ${what}. It is limited to: ${access}`, {
    param,
  });
}
