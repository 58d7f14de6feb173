import { randomBytes } from 'node:crypto';
import { loadStatement, type Database } from '#store';
import { GatewayError } from '#wire';
import type { Ledger, MicroUsd, Price, PriceBook } from '#billing';
import type { Primitive } from '#config';
import { pricedFacts } from './quoted-request.ts';
import { ANONYMOUS_ACCOUNT, type Call, type Caller, type Candidate } from '../call.ts';

/** Members of a request that its price follows from, at one offer. */
export type PricedFacts = Readonly<Record<string, string | number | boolean | null>>;

/** An offer at the price of a quote. */
interface QuotedOffer {
  readonly price: Price;
  readonly facts: PricedFacts;
}

/** A quote that a call may use. */
export interface Quote {
  readonly id: string;
  readonly primitive: Primitive;
  readonly service: string;
  /** By the ids of the offers. */
  readonly offers: ReadonlyMap<string, QuotedOffer>;
  /** The lock of a call that uses it, micro-USD. */
  readonly amount: MicroUsd;
}

/** A quote as it was given. */
interface GivenQuote {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly validUntil: number;
}

/** Costs that bind the gateway: one call at the price of now, whatever the price is then. */
export interface Quotes {
  /**
   * Binds what a prepared call costs at `candidates`, which all cost the same. Rejects with GatewayError
   * `rate_limit_exceeded` where the account has too many.
   */
  give(call: Call, candidates: readonly Candidate[], validMs?: number): Promise<GivenQuote>;
  /** Rejects with GatewayError `not_found`, `quote_expired` and `quote_used`. */
  find(id: string, caller: Caller): Promise<Quote>;
  /** Gives it to one call. Rejects with GatewayError `quote_used`. */
  claim(id: string, callId: string): Promise<void>;
  /** The call that has it was not charged: another may use it. */
  free(id: string, callId: string): Promise<void>;
  /** Deletes what has been over for a day, at most `limit` rows; returns how many. */
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
/** A call that has a quote and no lock for so long has died. */
const UNLOCKED_MS = 60_000;

const notFound = () => new GatewayError('not_found', 'Quote not found', { param: 'quote_id' });
const used = () =>
  new GatewayError('quote_used', 'This quote was used: a quote is for one call. Ask for a new one', {
    param: 'quote_id',
  });

export function createQuotes({ database, prices, ledger, validMs, now }: QuotesOptions): Quotes {
  /** Whether the call that has a quote is over, and was not charged. */
  async function isFree(callId: string, usedAt: number, amount: MicroUsd): Promise<boolean> {
    const record = await ledger.find(callId);
    if (record === null) return usedAt + UNLOCKED_MS < now();
    if (record.state === 'held') return false;
    return record.state !== 'settled' || (record.charged === 0n && amount > 0n);
  }

  async function rowOf(id: string) {
    const row = (await database.query(FIND, [id]))[0];
    if (row === undefined) return null;
    const { account, primitive, service, offers, amount, valid_until, call_id, used_at } = row;
    return {
      account: account as string,
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
      ]);
      if (rows.length > 0) return { id, validUntil };
      throw new GatewayError('rate_limit_exceeded', `This account has ${LIVE_MAX} quotes that are valid`, {
        retryAfterS: Math.ceil(liveMs / 1000),
      });
    },

    async find(id, caller) {
      const row = await rowOf(id);
      // Whoever pays for a call that a stranger asked for has the quote of it.
      const owns =
        row?.account === caller.account || (row?.account.startsWith(ANONYMOUS_ACCOUNT) && caller.run === undefined);
      if (row === null || !owns) throw notFound();
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
