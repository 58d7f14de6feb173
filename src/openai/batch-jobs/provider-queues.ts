import { loadStatements, type Database } from '#store';
import { Shares } from '#wire';
import type { Batch } from './batch.ts';
import { shareOf } from './batch-places.ts';
import type { ProviderApi } from './provider-api.ts';

/*
 * What a provider has in batches at the same time. It has room for so many requests of a key, so an account that fills
 * its queue would keep out all others, and could cancel at no cost what had not begun.
 */

const SQL = loadStatements(import.meta.url, './sql/provider-batches.sql', ['batchesThere']);

/** How long a provider that had no room is believed to have had as much as was there. */
const FULL_MS = 24 * 3_600_000;

interface ProviderQueuesDeps {
  readonly database: Pick<Database, 'query'>;
  readonly provider: Pick<ProviderApi, 'providerOf'>;
  /** Bytes of requests that one provider gets, from all gateways of the database. */
  readonly bytesMax: number;
  readonly now: () => number;
}

interface Going {
  readonly id: string;
  readonly offer: string;
  readonly bytes: number;
}

export class ProviderQueues {
  readonly #deps: ProviderQueuesDeps;
  /** The bytes that providers had when they had no room for more. */
  readonly #full = new Map<string, { readonly bytes: number; readonly since: number }>();

  constructor(deps: ProviderQueuesDeps) {
    this.#deps = deps;
  }

  /** Whether the account of a batch may have it at its provider now. A provider that has nothing gets any. */
  async mayGo(batch: Pick<Batch, 'account' | 'amount'>, one: Going): Promise<boolean> {
    const there = await this.#there(one);
    return there.all === 0 || there.mayTake(shareOf(batch), one.bytes);
  }

  async wasFull(one: Going): Promise<void> {
    const { all } = await this.#there(one);
    // What is there in other ways than through this gateway is not known.
    if (all > 0) this.#full.set(this.#deps.provider.providerOf(one.offer), { bytes: all, since: this.#deps.now() });
  }

  async #there({ id, offer }: Going): Promise<Shares> {
    const { database, provider, bytesMax, now } = this.#deps;
    const name = provider.providerOf(offer);
    const full = this.#full.get(name);
    const isFull = full !== undefined && now() < full.since + FULL_MS;
    const shares = new Shares(isFull ? Math.min(full.bytes, bytesMax) : bytesMax);
    for (const { account, amount, offer: other, bytes } of await database.query(SQL.batchesThere, [id]))
      if (provider.providerOf(other as string) === name)
        shares.take(shareOf({ account: account as string, amount: amount as bigint | null }), Number(bytes));
    return shares;
  }
}
