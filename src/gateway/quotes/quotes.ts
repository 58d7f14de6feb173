import { randomBytes } from 'node:crypto';
import { loadStatement, type Database } from '#store';
import { GatewayError } from '#wire';
import type { Ledger, MicroUsd, Price, PriceBook } from '#billing';
import type { Primitive } from '#config';
import { pricedFacts } from './quoted-request.ts';
import { ownPartOf } from '../acting.ts';
import { ANONYMOUS_ACCOUNT, type Call, type Caller, type Candidate } from '../call.ts';

/** The members of a request that determine its price at one offer. */
export type PricedFacts = Readonly<Record<string, string | number | boolean | null>>;

/** The price of a quote at one offer. */
interface QuotedOffer {
  readonly price: Price;
  readonly facts: PricedFacts;
}

/** A quote that a call may use. */
export interface Quote {
  readonly id: string;
  readonly primitive: Primitive;
  readonly service: string;
  /** Keyed by offer id. */
  readonly offers: ReadonlyMap<string, QuotedOffer>;
  /** The amount that a call with this quote locks, in micro-USD. */
  readonly amount: MicroUsd;
}

/** A quote that was given to a client. */
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
  /** Deletes quotes that expired at least a day ago, at most `limit` rows; returns how many. */
  sweep(limit: number): Promise<number>;
}

interface QuotesOptions {
  readonly database: Database;
  readonly prices: Pick<PriceBook, 'remember' | 'find'>;
  readonly ledger: Pick<Ledger, 'find'>;
  readonly validMs: number;
  readonly now: () => number;
}

const INSERT = loadStatement(import.meta.url, './sql/insert-quote.sql');
const FIND = loadStatement(import.meta.url, './sql/find-quote.sql');
const CLAIM = loadStatement(import.meta.url, './sql/claim-quote.sql');
const FREE = loadStatement(import.meta.url, './sql/free-quote.sql');
const SWEEP = loadStatement(import.meta.url, './sql/sweep-quotes.sql');

const LIVE_MAX = 1_000;
const OFFERS_MAX = 8;
const DAY_MS = 86_400_000;
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
    const row = (await database.query(FIND, [id]))[0];
    if (row === undefined) return null;
    const { account, part, primitive, service, offers, amount, valid_until, call_id, used_at } = row;
    return {
      account: account as string,
      part: part as string | null,
      primitive: primitive as Primitive,
      service: service as string,
      offers: JSON.parse(offers as string) as readonly { offer: string; price: string; facts: PricedFacts }[],
      amount: BigInt(amount as number),
      validUntil: Number(valid_until),
      callId: call_id as string | null,
      usedAt: Number(used_at),
    };
  }

  return {
    async give(call, candidates, liveMs = validMs) {
      const quoted = candidates.slice(0, OFFERS_MAX);
      await prices.remember(
        quoted.map(({ offer, price }) => ({ ...price, provider: offer.provider.id, service: offer.service })),
      );
      const id = `qt_${randomBytes(16).toString('hex')}`;
      const { account } = call.caller;
      const part = ownPartOf(call.caller);
      const at = now();
      const validUntil = at + liveMs;
      const offers = quoted.map(({ offer, price }) => ({
        offer: offer.id,
        price: price.id,
        facts: pricedFacts(call, offer),
      }));
      const rows = await database.query(INSERT, [
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
      throw new GatewayError('rate_limit_exceeded', `This account has ${LIVE_MAX} quotes that are valid and unused`, {
        retryAfterS: Math.ceil(liveMs / 1000),
      });
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
      const found = await Promise.all(row.offers.map(async (one) => ({ ...one, price: await prices.find(one.price) })));
      const offers = found.flatMap(({ offer, price, facts }) =>
        price === null ? [] : [[offer, { price: { id: price.id, rates: price.rates }, facts }] as const],
      );
      return { id, primitive: row.primitive, service: row.service, offers: new Map(offers), amount: row.amount };
    },

    async claim(id, callId) {
      const row = await rowOf(id);
      if (row === null) throw notFound();
      const before = row.callId !== null && (await isFree(row.callId, row.usedAt, row.amount)) ? row.callId : '';
      if ((await database.query(CLAIM, [id, callId, now(), before])).length === 0) throw used();
    },

    async free(id, callId) {
      await database.query(FREE, [id, callId]);
    },

    async sweep(limit) {
      return (await database.query(SWEEP, [now() - DAY_MS, limit])).length;
    },
  };
}
