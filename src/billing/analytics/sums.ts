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

/**
 * The objects to which a call adds. They are cached because most calls of a part share theirs with many other calls.
 */
interface CallCounters {
  readonly figures: readonly Figures[];
  readonly firstByte: readonly [place: SumRow, times: Times];
  readonly duration: readonly [place: SumRow, times: Times];
}

/** Adds calls up. */
export class SumsOfCalls {
  readonly #counted = new Map<string, CallCounters>();
  readonly #usage = new Map<string, Keyed>();
  readonly #tags = new Map<string, Keyed>();
  readonly #listings = new Map<string, Keyed>();
  readonly #market = new Map<string, Keyed>();
  readonly #offers = new Map<string, Keyed>();
  readonly #accounts = new Map<string, Keyed>();
  readonly #hoursFrom: number;
  readonly #times = new Map<string, Times>();
  readonly #hashes = new Map<string, bigint>();
  readonly #activeUsers = new Map<string, SumRow>();
  readonly #knownUsers = new Map<string, { readonly account: string; since: number }>();
  #asOf = 0;

  /** `hoursFrom`: calls of this hour and later are summed up by hour, too; an hour since 1970-01-01 UTC. */
  constructor(hoursFrom: number) {
    this.#hoursFrom = hoursFrom;
  }

  add(call: CallFacts): void {
    const { account, day, key, primitive, service, provider } = call;
    this.#asOf = Math.max(this.#asOf, call.at);
    const usage = [account, day, key, primitive, service, provider];
    const name = nameOf(usage);
    let counted = this.#counted.get(name);
    if (!counted) this.#counted.set(name, (counted = this.#countedOf(usage, name, call)));
    for (const figures of counted.figures) count(figures, call);
    for (const [tag, value] of call.tags)
      count(figuresOf(this.#tags, [account, tag, day, value, key, primitive, service, provider]), call);
    this.#countSpan(DAY, day, call);
    const hour = Math.floor(call.at / HOUR_MS);
    if (hour >= this.#hoursFrom) this.#countSpan(HOUR, hour, call);
    this.#countUser(call);
    if (call.cause !== '') return;
    countTime(counted.firstByte, call.firstByteMs);
    countTime(counted.duration, call.durationMs);
  }

  #countedOf(usage: SumRow, name: string, call: CallFacts): CallCounters {
    const { day, primitive, service, provider } = call;
    const development = call.isDevelopment ? 1 : 0;
    const timesOf = (kind: string): CallCounters['duration'] => {
      const place = [service, primitive, day, development, provider, kind];
      const name = nameOf(place);
      const known = this.#times.get(name);
      if (known) return [place, known];
      const times: Times = new Map();
      this.#times.set(name, times);
      return [place, times];
    };
    return {
      figures: [
        figuresOf(this.#usage, usage, name),
        figuresOf(this.#listings, [day, development, primitive, service, provider]),
        figuresOf(this.#market, [day, development, primitive]),
      ],
      firstByte: timesOf('first_byte'),
      duration: timesOf('duration'),
    };
  }

  #countSpan(span: Span, at: number, call: CallFacts): void {
    const { account, primitive, service, provider, cause } = call;
    count(figuresOf(this.#offers, [span, at, primitive, service, provider, cause]), call);
    count(figuresOf(this.#accounts, [span, at, account]), call);
  }

  /** The sums of all added calls. */
  sums(): Sums {
    const rows = (table: ReadonlyMap<string, Keyed>, figures: (each: Figures) => SumRow) =>
      ordered(table).map(([, { key, figures: each }]) => [...key, ...figures(each)]);
    return {
      usage: rows(this.#usage, usageFigures),
      tags: rows(this.#tags, usageFigures),
      listings: rows(this.#listings, listingFigures),
      market: rows(this.#market, marketFigures),
      offers: rows(this.#offers, offerFigures),
      accounts: rows(this.#accounts, accountFigures),
      times: ordered(new Map([...this.#times.values()].flatMap((times) => [...times.values()].map(keyed)))).map(
        ([, { key, calls }]) => [...key, calls],
      ),
      activeUsers: ordered(this.#activeUsers).map(([, row]) => row),
      knownUsers: ordered(this.#knownUsers).map(([hash, { account, since }]) => [
        hash,
        isWallet(account) ? 1 : 0,
        since,
      ]),
      asOf: this.#asOf,
    };
  }

  #countUser({ account, day, cause }: CallFacts): void {
    let hash = this.#hashes.get(account);
    if (hash === undefined) this.#hashes.set(account, (hash = hashOf(account)));
    if (cause === '') this.#activeUsers.set(`${day} ${hash}`, [day, `${hash}`]);
    const known = this.#knownUsers.get(`${hash}`);
    if (known === undefined) this.#knownUsers.set(`${hash}`, { account, since: day });
    else if (day < known.since) known.since = day;
  }
}

function countTime([place, times]: CallCounters['duration'], ms: number): void {
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

function figuresOf(table: Map<string, Keyed>, key: SumRow, name = nameOf(key)): Figures {
  const known = table.get(name);
  if (known) return known.figures;
  const figures = noFigures();
  table.set(name, { key, figures });
  return figures;
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

/** Encodes rows as one parameter: a JSON object with a member for each row. json_each of both engines reads it. */
export function rowsText(rows: readonly SumRow[]): string {
  let text = '';
  for (const row of rows) text += `${text === '' ? '{' : ','}"${text.length}":${JSON.stringify(row)}`;
  return text === '' ? '{}' : `${text}}`;
}
