import { hashOf, isWallet, type CallFacts } from './call-facts.ts';
import { bucketOf } from './time-buckets.ts';

/** A row of a table of sums, as a statement takes it: its key, then its figures. Amounts are decimal texts. */
export type SumRow = readonly (string | number)[];

/** Rows that calls add to each table, in the order of its key. Plain data, so that another thread can send it. */
export interface Sums {
  readonly usage: readonly SumRow[];
  readonly listings: readonly SumRow[];
  readonly times: readonly SumRow[];
  readonly market: readonly SumRow[];
  readonly activeUsers: readonly SumRow[];
  readonly knownUsers: readonly SumRow[];
  /** When the newest of the calls was resolved, in epoch milliseconds; 0 without calls. */
  readonly asOf: number;
}

/** The figures of one row, in the order of the tables' columns. */
interface Figures {
  requests: number;
  failed: number;
  charged: bigint;
  fee: bigint;
  prompt: number;
  completion: number;
  reasoning: number;
  cached: number;
  images: number;
  seconds: number;
  timedTokens: number;
  timedMs: number;
}

interface Keyed {
  readonly key: SumRow;
  readonly figures: Figures;
}

/** Adds calls up. */
export class SumsOfCalls {
  readonly #usage = new Map<string, Keyed>();
  readonly #listings = new Map<string, Keyed>();
  readonly #market = new Map<string, Keyed>();
  readonly #times = new Map<string, { readonly key: SumRow; calls: number }>();
  readonly #hashes = new Map<string, bigint>();
  readonly #activeUsers = new Map<string, SumRow>();
  readonly #knownUsers = new Map<string, { readonly account: string; since: number }>();
  #asOf = 0;

  add(call: CallFacts): void {
    const { day, account, key, primitive, service, provider } = call;
    const development = call.isDevelopment ? 1 : 0;
    this.#asOf = Math.max(this.#asOf, call.at);
    count(this.#usage, [account, day, key, primitive, service, provider], call);
    count(this.#listings, [day, development, primitive, service, provider], call);
    count(this.#market, [day, development, primitive], call);
    this.#countUser(call);
    if (!call.isSettled) return;
    this.#countTime([service, primitive, day, development, provider, 'first_byte'], call.firstByteMs);
    this.#countTime([service, primitive, day, development, provider, 'duration'], call.durationMs);
  }

  /** Everything that was added. */
  sums(): Sums {
    const rows = (table: ReadonlyMap<string, Keyed>, figures: (of: Figures) => SumRow) =>
      ordered(table).map(([, { key, figures: of }]) => [...key, ...figures(of)]);
    return {
      usage: rows(this.#usage, usageFigures),
      listings: rows(this.#listings, listingFigures),
      market: rows(this.#market, marketFigures),
      times: ordered(this.#times).map(([, { key, calls }]) => [...key, calls]),
      activeUsers: ordered(this.#activeUsers).map(([, row]) => row),
      knownUsers: ordered(this.#knownUsers).map(([hash, { account, since }]) => [
        hash,
        isWallet(account) ? 1 : 0,
        since,
      ]),
      asOf: this.#asOf,
    };
  }

  #countUser({ account, day, isSettled }: CallFacts): void {
    let hash = this.#hashes.get(account);
    if (hash === undefined) this.#hashes.set(account, (hash = hashOf(account)));
    if (isSettled) this.#activeUsers.set(`${day} ${hash}`, [day, `${hash}`]);
    const known = this.#knownUsers.get(`${hash}`);
    if (known === undefined) this.#knownUsers.set(`${hash}`, { account, since: day });
    else if (day < known.since) known.since = day;
  }

  #countTime(place: SumRow, ms: number): void {
    if (ms === 0) return;
    const key = [...place, bucketOf(ms)];
    const name = nameOf(key);
    const found = this.#times.get(name);
    if (found) found.calls += 1;
    else this.#times.set(name, { key, calls: 1 });
  }
}

const nameOf = (key: SumRow): string => key.join('\u001F');

/** By code units: two gateways that write rows of one table do it in the same order. */
const ordered = <T>(table: ReadonlyMap<string, T>): [string, T][] => [...table].sort(([a], [b]) => (a < b ? -1 : 1));

function count(table: Map<string, Keyed>, key: SumRow, call: CallFacts): void {
  const name = nameOf(key);
  let found = table.get(name);
  if (!found) table.set(name, (found = { key, figures: noFigures() }));
  const { figures } = found;
  if (!call.isSettled) {
    figures.failed += 1;
    return;
  }
  figures.requests += 1;
  figures.charged += call.charged;
  figures.fee += call.fee;
  figures.prompt += call.prompt;
  figures.completion += call.completion;
  figures.reasoning += call.reasoning;
  figures.cached += call.cached;
  figures.images += call.images;
  figures.seconds += call.seconds;
  if (call.primitive === 'model' && call.completion > 0 && call.durationMs > 0) {
    figures.timedTokens += call.completion;
    figures.timedMs += call.durationMs;
  }
}

const noFigures = (): Figures => ({
  requests: 0,
  failed: 0,
  charged: 0n,
  fee: 0n,
  prompt: 0,
  completion: 0,
  reasoning: 0,
  cached: 0,
  images: 0,
  seconds: 0,
  timedTokens: 0,
  timedMs: 0,
});

const usageFigures = (of: Figures): SumRow => [
  of.requests,
  of.failed,
  `${of.charged}`,
  `${of.fee}`,
  of.prompt,
  of.completion,
  of.reasoning,
  of.cached,
  of.images,
  of.seconds,
];

const listingFigures = (of: Figures): SumRow => [
  of.requests,
  of.failed,
  `${of.charged}`,
  of.prompt,
  of.completion,
  of.reasoning,
  of.cached,
  of.images,
  of.seconds,
  of.timedTokens,
  of.timedMs,
];

const marketFigures = (of: Figures): SumRow => [
  of.requests,
  of.failed,
  `${of.charged}`,
  of.prompt,
  of.completion,
  of.reasoning,
  of.cached,
];
