import { DAY_MS, hashOf, isWallet, type CallFacts } from './call-facts.ts';

/**
 * A row of a table of sums in the form of a statement's parameter: first its key, then its figures. Amounts are decimal
 * texts.
 */
export type SumRow = readonly (string | number)[];

/** The rows to add to each table, ordered by their keys. Plain data, so that it can be sent to another thread. */
export interface Sums {
  readonly usage: readonly SumRow[];
  readonly tags: readonly SumRow[];
  readonly listings: readonly SumRow[];
  readonly times: readonly SumRow[];
  readonly market: readonly SumRow[];
  readonly offers: readonly SumRow[];
  readonly accounts: readonly SumRow[];
  readonly activeUsers: readonly SumRow[];
  readonly knownUsers: readonly SumRow[];
  /** When the newest of the calls was resolved, in epoch milliseconds. 0 without calls. */
  readonly asOf: number;
}

/** The figures of one row, in the order of the tables' columns. */
interface Figures {
  requests: number;
  failed: number;
  charged: bigint;
  fee: bigint;
  /** The cost of the calls whose cost is known, also of those that failed here and that the vendor bills. */
  cost: bigint;
  /** The charges of these, without the fee. */
  costBase: bigint;
  /** The served calls whose cost is unknown. */
  uncosted: number;
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

/** A histogram: the number of calls by bucket of their time, of one kind of time and one key. */
type Times = Map<number, { readonly key: SumRow; calls: number }>;

/** Calls that add to the same rows: of one account, key, service, provider, cause and hour, with the same tags. */
interface CallGroup {
  /** Any of them. */
  readonly call: CallFacts;
  readonly hour: number;
  readonly figures: Figures;
  readonly firstByte: readonly [place: SumRow, times: Times];
  readonly duration: readonly [place: SumRow, times: Times];
}

/** Adds calls up: each to its group, and the groups to the rows of all tables. */
export class SumsOfCalls {
  readonly #groups = new Map<string, CallGroup>();
  readonly #hoursFrom: number;
  readonly #times = new Map<string, Times>();
  #asOf = 0;

  /** `hoursFrom`: calls of this hour and later are summed up by hour, too; an hour since 1970-01-01 UTC. */
  constructor(hoursFrom: number) {
    this.#hoursFrom = hoursFrom;
  }

  add(call: CallFacts): void {
    this.#asOf = Math.max(this.#asOf, call.at);
    const hour = Math.floor(call.at / HOUR_MS);
    const parts = [call.account, call.day, hour, call.key, call.primitive, call.service, call.provider, call.cause];
    for (const [tag, value] of call.tags) parts.push(tag, value);
    const name = nameOf(parts);
    let group = this.#groups.get(name);
    if (!group) this.#groups.set(name, (group = this.#newGroup(call, hour)));
    count(group.figures, call);
    if (call.cause !== '') return;
    countTime(group.firstByte, call.firstByteMs);
    countTime(group.duration, call.durationMs);
  }

  #newGroup(call: CallFacts, hour: number): CallGroup {
    const { day, primitive, service, provider } = call;
    const timesOf = (kind: string): CallGroup['duration'] => {
      const place = [service, primitive, day, call.isDevelopment ? 1 : 0, provider, kind];
      const name = nameOf(place);
      let times = this.#times.get(name);
      if (!times) this.#times.set(name, (times = new Map()));
      return [place, times];
    };
    return { call, hour, figures: noFigures(), firstByte: timesOf('first_byte'), duration: timesOf('duration') };
  }

  /** The sums of all added calls. */
  sums(): Sums {
    const tables = new Tables();
    for (const group of this.#groups.values()) tables.add(group, this.#hoursFrom);
    return {
      ...tables.rows(),
      times: ordered(new Map([...this.#times.values()].flatMap((times) => [...times.values()].map(keyed)))).map(
        ([, { key, calls }]) => [...key, calls],
      ),
      asOf: this.#asOf,
    };
  }
}

/** The rows of the tables that have one row for several groups. */
class Tables {
  readonly #usage = new Map<string, Keyed>();
  readonly #tags = new Map<string, Keyed>();
  readonly #listings = new Map<string, Keyed>();
  readonly #market = new Map<string, Keyed>();
  readonly #offers = new Map<string, Keyed>();
  readonly #accounts = new Map<string, Keyed>();
  readonly #hashes = new Map<string, bigint>();
  readonly #activeUsers = new Map<string, SumRow>();
  readonly #knownUsers = new Map<string, { readonly account: string; since: number }>();

  add({ call, hour, figures }: CallGroup, hoursFrom: number): void {
    const { account, day, key, primitive, service, provider } = call;
    const development = call.isDevelopment ? 1 : 0;
    addTo(this.#usage, [account, day, key, primitive, service, provider], figures);
    for (const [tag, value] of call.tags)
      addTo(this.#tags, [account, tag, day, value, key, primitive, service, provider], figures);
    addTo(this.#listings, [day, development, primitive, service, provider], figures);
    addTo(this.#market, [day, development, primitive], figures);
    this.#addSpan(DAY, day, call, figures);
    if (hour >= hoursFrom) this.#addSpan(HOUR, hour, call, figures);
    this.#addUser(call);
  }

  #addSpan(span: Span, at: number, { account, primitive, service, provider, cause }: CallFacts, figures: Figures) {
    addTo(this.#offers, [span, at, primitive, service, provider, cause], figures);
    addTo(this.#accounts, [span, at, account], figures);
  }

  #addUser({ account, day, cause }: CallFacts): void {
    let hash = this.#hashes.get(account);
    if (hash === undefined) this.#hashes.set(account, (hash = hashOf(account)));
    if (cause === '') this.#activeUsers.set(`${day} ${hash}`, [day, `${hash}`]);
    const known = this.#knownUsers.get(`${hash}`);
    if (known === undefined) this.#knownUsers.set(`${hash}`, { account, since: day });
    else if (day < known.since) known.since = day;
  }

  rows(): Omit<Sums, 'times' | 'asOf'> {
    const rows = (table: ReadonlyMap<string, Keyed>, columns: (each: Figures) => SumRow) =>
      ordered(table).map(([, { key, figures: each }]) => [...key, ...columns(each)]);
    return {
      usage: rows(this.#usage, usageFigures),
      tags: rows(this.#tags, usageFigures),
      listings: rows(this.#listings, listingFigures),
      market: rows(this.#market, marketFigures),
      offers: rows(this.#offers, offerFigures),
      accounts: rows(this.#accounts, accountFigures),
      activeUsers: ordered(this.#activeUsers).map(([, row]) => row),
      knownUsers: ordered(this.#knownUsers).map(([hash, { account, since }]) => [
        hash,
        isWallet(account) ? 1 : 0,
        since,
      ]),
    };
  }
}

function countTime([place, times]: CallGroup['duration'], ms: number): void {
  if (ms === 0) return;
  const bucket = bucketOf(ms);
  const entry = times.get(bucket);
  if (entry) entry.calls += 1;
  else times.set(bucket, { key: [...place, bucket], calls: 1 });
}

const nameOf = (key: SumRow): string => key.join('\u001F');
const keyed = <T extends { readonly key: SumRow }>(entry: T): [string, T] => [nameOf(entry.key), entry];

/** Sorted by code units. All gateways write the rows of a table in this order, which avoids deadlocks. */
const ordered = <T>(table: ReadonlyMap<string, T>): [string, T][] => [...table].sort(([a], [b]) => (a < b ? -1 : 1));

/** Adds the figures of a group to the row with this key. */
function addTo(table: Map<string, Keyed>, key: SumRow, added: Figures): void {
  const name = nameOf(key);
  let row = table.get(name);
  if (!row) table.set(name, (row = { key, figures: noFigures() }));
  const { figures } = row;
  figures.requests += added.requests;
  figures.failed += added.failed;
  figures.charged += added.charged;
  figures.fee += added.fee;
  figures.cost += added.cost;
  figures.costBase += added.costBase;
  figures.uncosted += added.uncosted;
  figures.prompt += added.prompt;
  figures.completion += added.completion;
  figures.reasoning += added.reasoning;
  figures.cached += added.cached;
  figures.images += added.images;
  figures.seconds += added.seconds;
  figures.timedTokens += added.timedTokens;
  figures.timedMs += added.timedMs;
}

function count(figures: Figures, call: CallFacts): void {
  if (call.cost !== null) {
    figures.cost += call.cost;
    figures.costBase += call.charged - call.fee;
  }
  if (call.cause !== '') {
    figures.failed += 1;
    return;
  }
  figures.requests += 1;
  if (call.cost === null) figures.uncosted += 1;
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
  cost: 0n,
  costBase: 0n,
  uncosted: 0,
  prompt: 0,
  completion: 0,
  reasoning: 0,
  cached: 0,
  images: 0,
  seconds: 0,
  timedTokens: 0,
  timedMs: 0,
});

const usageFigures = (figures: Figures): SumRow => [
  figures.requests,
  figures.failed,
  `${figures.charged}`,
  `${figures.fee}`,
  figures.prompt,
  figures.completion,
  figures.reasoning,
  figures.cached,
  figures.images,
  figures.seconds,
];

const listingFigures = (figures: Figures): SumRow => [
  figures.requests,
  figures.failed,
  `${figures.charged}`,
  figures.prompt,
  figures.completion,
  figures.reasoning,
  figures.cached,
  figures.images,
  figures.seconds,
  figures.timedTokens,
  figures.timedMs,
];

const marketFigures = (figures: Figures): SumRow => [
  figures.requests,
  figures.failed,
  `${figures.charged}`,
  figures.prompt,
  figures.completion,
  figures.reasoning,
  figures.cached,
];

const offerFigures = (figures: Figures): SumRow => [
  figures.requests,
  figures.failed,
  `${figures.charged}`,
  `${figures.fee}`,
  `${figures.cost}`,
  `${figures.costBase}`,
  figures.prompt + figures.completion,
  figures.uncosted,
];

const accountFigures = (figures: Figures): SumRow => [
  figures.requests,
  figures.failed,
  `${figures.charged}`,
  `${figures.fee}`,
];

/** The lengths of time of the sums of offers and accounts, as their tables name them. */
export const HOUR = 0;
export const DAY = 1;
export type Span = typeof HOUR | typeof DAY;
export const HOUR_MS = DAY_MS / 24;
/** The hours for which there are sums, before this one. */
const HOURS = 72;
/** The first hour that is still summed up by itself at `now`, in epoch milliseconds. */
export const firstHour = (now: number): number => Math.floor(now / HOUR_MS) - HOURS;

/** Four buckets per doubling, so a quantile is within 10 % of the measured times. */
const PER_DOUBLING = 4;

/** The bucket of a time in milliseconds. The first bucket also has times below one. */
const bucketOf = (ms: number): number => Math.max(0, Math.floor(Math.log2(ms) * PER_DOUBLING));

/** The quantile `p` in whole milliseconds. null without a call. `buckets` has the number of calls by bucket. */
export function quantileOf(buckets: ReadonlyMap<number, number>, p: number): number | null {
  let calls = 0;
  for (const count of buckets.values()) calls += count;
  if (calls === 0) return null;
  const rank = Math.max(1, Math.ceil(p * calls));
  let below = 0;
  for (const [bucket, count] of [...buckets].sort(([a], [b]) => a - b)) {
    below += count;
    if (below >= rank) return Math.round(2 ** ((bucket + 0.5) / PER_DOUBLING));
  }
  return null;
}
