import { randomBytes } from 'node:crypto';
import { loadStatements, type Database } from '#store';
import { GatewayError } from '#errors';
import type { Ledger, PriceBook } from '#billing';
import { type MicroUsd, type Price, formatUsd, ratesFromJson, ratesToJson } from '#billing/amounts';
import type { Primitive } from '#config';
import { ownPartOf, ANONYMOUS_ACCOUNT, type Caller } from '#accounts';
import type { Offer } from '#catalog';
import type { PaymentAttempt } from '#payments';
import type { Call, Candidate, CallRequest, PricedFacts, RequestedQuote } from './call.ts';

/** An offer in the row of its quote. `rates`: see ratesToJson; absent in those of earlier versions. */
interface StoredOffer {
  readonly offer: string;
  readonly price: string;
  readonly rates?: Readonly<Record<string, string>>;
  readonly facts: PricedFacts;
}

interface QuotedOffer {
  readonly price: Price;
  readonly facts: PricedFacts;
}

interface Quote {
  readonly id: string;
  readonly primitive: Primitive;
  readonly service: string;
  /** Keyed by offer id. */
  readonly offers: ReadonlyMap<string, QuotedOffer>;
  /** The amount that a call with this quote locks, in micro-USD. */
  readonly amount: MicroUsd;
}

interface GivenQuote {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly validUntil: number;
}

/** Binding costs: a quote gives one later call the price of the time of the quote. */
export interface Quotes {
  /**
   * Gives a quote for a prepared call at `candidates`, which must all cost the same. `validMs`: default the configured
   * time. Rejects with GatewayError `rate_limit_exceeded` if the account has too many unused valid quotes.
   */
  give(call: Call, candidates: readonly Candidate[], validMs?: number): Promise<GivenQuote>;
  /** Rejects with GatewayError `not_found`, `quote_expired` and `quote_used`. */
  find(id: string, caller: Caller): Promise<Quote>;
  /** Reserves the quote for one call. Rejects with GatewayError `quote_used`. */
  claim(id: string, callId: string): Promise<void>;
  /** Releases the quote of a call that was not charged, so that another call can use it. */
  free(id: string, callId: string): Promise<void>;
  /** Deletes quotes that expired at least an hour ago, at most `limit` rows; returns how many. */
  sweep(limit: number): Promise<number>;
}

interface QuotesOptions {
  readonly database: Database;
  /** For quotes that an earlier version gave: their prices were stored there. */
  readonly prices: Pick<PriceBook, 'find'>;
  readonly ledger: Pick<Ledger, 'find'>;
  readonly validMs: number;
  readonly now: () => number;
}

const SQL = loadStatements(import.meta.url, './sql/quotes.sql', [
  'insertQuote',
  'findQuote',
  'claimQuote',
  'freeQuote',
  'sweepQuotes',
]);

const LIVE_MAX = 1_000;
const OFFERS_MAX = 8;
const HOUR_MS = 3_600_000;
/** A call that claimed a quote and has no lock after this time is considered dead. */
const UNLOCKED_MS = 60_000;

const notFound = () => new GatewayError('not_found', 'Quote not found', { param: 'quote_id' });
const used = () =>
  new GatewayError('quote_used', 'This quote was already used. A quote is for one call: ask for a new one', {
    param: 'quote_id',
  });

/**
 * A quote for a caller without an account can be used by any caller without a run token, because the payer gets an
 * account only with the payment.
 */
function owns(caller: Caller, { account, part }: { readonly account: string; readonly part: string | null }) {
  if (account.startsWith(ANONYMOUS_ACCOUNT)) return caller.run === undefined;
  const own = ownPartOf(caller);
  return account === caller.account && (own === null || own === part);
}

export function createQuotes({ database, prices, ledger, validMs, now }: QuotesOptions): Quotes {
  /** Whether the call that claimed a quote has ended without a charge. */
  async function isFree(callId: string, usedAt: number, amount: MicroUsd): Promise<boolean> {
    const record = await ledger.find(callId);
    if (record === null) return usedAt + UNLOCKED_MS < now();
    if (record.state === 'held') return false;
    return record.state !== 'settled' || (record.charged === 0n && amount > 0n);
  }

  async function rowOf(id: string) {
    const row = (await database.query(SQL.findQuote, [id]))[0];
    if (row === undefined) return null;
    const { account, part, primitive, service, offers, amount, valid_until, call_id, used_at } = row;
    return {
      account: account as string,
      part: part as string | null,
      primitive: primitive as Primitive,
      service: service as string,
      offers: JSON.parse(offers as string) as readonly StoredOffer[],
      amount: BigInt(amount as number),
      validUntil: Number(valid_until),
      callId: call_id as string | null,
      usedAt: Number(used_at),
    };
  }

  return {
    async give(call, candidates, liveMs = validMs) {
      const quoted = candidates.slice(0, OFFERS_MAX);
      const id = `qt_${randomBytes(16).toString('hex')}`;
      const { account } = call.caller;
      const part = ownPartOf(call.caller);
      const at = now();
      const validUntil = at + liveMs;
      const offers: readonly StoredOffer[] = quoted.map(({ offer, price }) => ({
        offer: offer.id,
        price: price.id,
        rates: ratesToJson(price.rates),
        facts: pricedFacts(call, offer, price),
      }));
      const rows = await database.query(SQL.insertQuote, [
        id,
        account,
        call.primitive,
        call.service,
        JSON.stringify(offers),
        Number(quoted[0]!.estimate + call.lendable),
        at,
        validUntil,
        LIVE_MAX,
        part,
      ]);
      if (rows.length > 0) return { id, validUntil };
      throw new GatewayError(
        'rate_limit_exceeded',
        part === null
          ? `This account has ${LIVE_MAX} quotes that are valid and unused`
          : `This key has its share of the quotes that are valid and unused, which is ${LIVE_MAX} and less beside other keys`,
        {
          retryAfterS: Math.ceil(liveMs / 1000),
        },
      );
    },

    async find(id, caller) {
      const row = await rowOf(id);
      if (row === null || !owns(caller, row)) throw notFound();
      if (row.validUntil <= now()) {
        const since = new Date(row.validUntil).toISOString();
        throw new GatewayError('quote_expired', `This quote was valid until ${since}. Ask for a new one`, {
          param: 'quote_id',
        });
      }
      if (row.callId !== null && !(await isFree(row.callId, row.usedAt, row.amount))) throw used();
      const offers: [string, QuotedOffer][] = [];
      for (const { offer, price: priceId, rates: json, facts } of row.offers) {
        const rates = json === undefined ? (await prices.find(priceId))?.rates : ratesFromJson(json);
        if (rates !== undefined) offers.push([offer, { price: { id: priceId, rates }, facts }]);
      }
      return { id, primitive: row.primitive, service: row.service, offers: new Map(offers), amount: row.amount };
    },

    async claim(id, callId) {
      const row = await rowOf(id);
      if (row === null) throw notFound();
      const before = row.callId !== null && (await isFree(row.callId, row.usedAt, row.amount)) ? row.callId : '';
      if ((await database.query(SQL.claimQuote, [id, callId, now(), before])).length === 0) throw used();
    },

    async free(id, callId) {
      await database.query(SQL.freeQuote, [id, callId]);
    },

    async sweep(limit) {
      return (await database.query(SQL.sweepQuotes, [now() - HOUR_MS, limit])).length;
    },
  };
}

/** Whether a quote can fix the price of an offer. */
export const isQuoted = ({ media }: Candidate['offer']): boolean => media?.unquoted !== true;

/**
 * The members of a call that determine its price at an offer. They include the operation, because a tool of a server
 * may have its own price, and the service tier of a model. `price`: that of the call at the offer, without a quote.
 */
export function pricedFacts(
  { priced, operation = null }: Pick<Call, 'priced'> & Partial<Pick<Call, 'operation'>>,
  offer: Offer,
  price: Price,
): PricedFacts {
  const tier = serviceTierOf(offer, price);
  return {
    ...priced?.(offer),
    ...(operation === null ? {} : { operation }),
    ...(tier === null ? {} : { service_tier: tier }),
  };
}

/** The service tier of a model whose price this is; null for the default tier, and for all other offers. */
function serviceTierOf({ primitive, variants }: Offer, { id }: Price): string | null {
  if (primitive !== 'model') return null;
  return Object.entries(variants).find(([, tier]) => tier.id === id)?.[0] ?? null;
}

const mismatch = (param: string, message: string) =>
  new GatewayError('quote_mismatch', `The quote is for another call: ${message}`, { param });

/**
 * The request with the prices of the quote, limited to the offers of the quote. `prepare` throws GatewayError
 * `quote_mismatch`.
 */
export function atQuote(request: CallRequest, quote: Quote): CallRequest {
  const { cap } = request;
  // The quote sets the price, so the cap is compared with the quote and not with the offer's own price.
  const uncapped = cap?.cappedRequest ?? request;
  if (cap && quote.amount > cap.amount)
    throw new GatewayError(
      'unprocessable',
      `${cap.name} is ${formatUsd(cap.amount)} USD, but the quote is ${formatUsd(quote.amount)} USD`,
      { param: cap.name },
    );
  if (request.primitive !== quote.primitive)
    throw mismatch('quote_id', `it is for the primitive ${quote.primitive}, not ${request.primitive}`);
  const quoted = (offer: Offer) => {
    if (offer.service !== quote.service) throw mismatch('model', `it is for ${quote.service}, not ${offer.service}`);
    const quotedOffer = quote.offers.get(offer.id);
    if (quotedOffer === undefined)
      throw new GatewayError('unprocessable', `${offer.provider.name} is not in the quote`, { param: 'quote_id' });
    return quotedOffer;
  };
  const { budget } = request;
  return {
    ...request,
    // The cap of an agent is also the budget of its call. A cap above the quote allows no more than the quote.
    ...(typeof budget === 'bigint' && budget > quote.amount ? { budget: quote.amount } : {}),
    // The client knows the cost from the quote, so a raised price needs no other acceptance.
    capped: true,
    price(offer) {
      const { price, facts } = quoted(offer);
      const own = offer.primitive === 'model' ? request.price?.(offer) : undefined;
      const requestFacts = pricedFacts(request, offer, own ?? offer.price);
      for (const name of new Set([...Object.keys(facts), ...Object.keys(requestFacts)])) {
        const [was, is] = [facts[name] ?? null, requestFacts[name] ?? null];
        if (was !== is) throw mismatch(name, `it has ${name} ${was}, not ${is}`);
      }
      return price;
    },
    estimate(offer) {
      const most = uncapped.estimate(offer);
      return 'costMax' in most ? { costMax: quote.amount } : most;
    },
  };
}

/** Throws GatewayError `quote_mismatch` for a call that may cost more than its quote. */
export function refuseDearer({ candidates, lendable }: Call, { amount }: Quote): void {
  for (const { estimate } of candidates)
    if (estimate + lendable > amount) throw mismatch('quote_id', 'this one may cost more');
}

export const QUOTE_HEADER = 'x-quote-id';

const QUOTE_ID = /^qt_[0-9a-f]{32}$/;

/**
 * The quote that the body, the header or the payment names, in this order; null for none. A payment contains the terms
 * that it was made for, with the id of their quote. Throws GatewayError `not_found` for a text that is not a quote id.
 */
export function requestedQuote(
  inBody: unknown,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  payment: PaymentAttempt | null,
): RequestedQuote | null {
  const quoteId = inBody ?? headers[QUOTE_HEADER];
  if (quoteId !== undefined && quoteId !== null) {
    if (typeof quoteId !== 'string' || !QUOTE_ID.test(quoteId))
      throw new GatewayError('not_found', 'Quote not found', {
        param: inBody === undefined || inBody === null ? QUOTE_HEADER : 'quote_id',
      });
    return { id: quoteId, implied: false };
  }
  if (payment === null) return null;
  const { extra } = payment.payload['accepted'] as { readonly extra?: { readonly quoteId?: unknown } };
  const id = extra?.quoteId;
  return typeof id === 'string' && QUOTE_ID.test(id) ? { id, implied: true } : null;
}
