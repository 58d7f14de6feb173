import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MicroUsd } from '#billing/amounts';
import { loadStatements, type Database, type Row } from '#store';
import {
  type CostFinder,
  type CostOfOffer,
  costOfCall,
  countOf,
  DAY_MS,
  type DayRange,
  fieldsOf,
  nameOf,
  textOf,
  tokensOf,
} from './call-facts.ts';

/** The calls of one offer on one day, as its vendor may have billed them. */
export interface OfferCalls {
  /** Days since 1970-01-01 UTC: the day on which the calls ended. */
  readonly day: number;
  /** Name of the provider. '' for calls that ended before one was known. */
  readonly provider: string;
  readonly service: string;
  /** Calls that the provider served and reported, also those that were free here. */
  requests: number;
  /** Of these, calls that were free here because their answer reported a failure or had nothing. */
  free: number;
  /** Of these, calls whose use was measured here, because they were cut before the provider reported it. */
  measured: number;
  /** Of these, calls whose reported use was beyond what can be charged, so it was cut. */
  claims: number;
  /** Attempts that failed with an error of the provider. */
  refused: number;
  /** Attempts that broke off or took too long: the provider may have worked, and bills what it has begun. */
  broken: number;
  /** Calls whose client left before an answer. */
  aborted: number;
  /** Calls with a consumer's own key, which the vendor bills to the consumer. They are in no other figure. */
  ownKeys: number;
  prompt: number;
  completion: number;
  cached: number;
  reasoning: number;
  charged: MicroUsd;
  fee: MicroUsd;
  /** The sum by the cost of the offer. null if it is unknown. */
  cost: MicroUsd | null;
}

const SQL = loadStatements(import.meta.url, './sql/offer-calls.sql', ['callsResolvedIn']);
/** About 2 ms on the event loop. */
const PAGE = 250;

/**
 * Adds up the calls of models that ended on these days, by day, provider and service, of all accounts and of the
 * gateway itself. It reads the records and not the daily figures, because those have neither failed attempts nor whose
 * key was used. Days that are in archives are not read.
 */
export function sumOfferCalls(
  database: Pick<Database, 'snapshot'>,
  party: string,
  { first, last }: DayRange,
  costOf: CostFinder,
): Promise<readonly OfferCalls[]> {
  return database.snapshot(party, async (query) => {
    const sums = new Map<string, OfferCalls>();
    const sumsOf = (day: number, provider: string, service: string): OfferCalls => {
      const key = `${day} ${provider} ${service}`;
      let group = sums.get(key);
      if (group === undefined)
        sums.set(key, (group = noCalls(day, provider, service, costOf(provider, service, 'model'))));
      return group;
    };
    for (let after = ''; ;) {
      const page = await query(SQL.callsResolvedIn, [after, first * DAY_MS, (last + 1) * DAY_MS, PAGE]);
      for (const row of page) addCall(row, sumsOf, costOf);
      if (page.length < PAGE) return [...sums.values()];
      after = page.at(-1)!['id'] as string;
      // Lets other work of the event loop run in between.
      await nextTurn();
    }
  });
}

/** Flags of a call whose claim was not charged as it came. */
const CUT_CLAIMS: ReadonlySet<unknown> = new Set(['usage_implausible', 'over_cap']);

const noCalls = (day: number, provider: string, service: string, known: CostOfOffer | null): OfferCalls => ({
  day,
  provider,
  service,
  requests: 0,
  free: 0,
  measured: 0,
  claims: 0,
  refused: 0,
  broken: 0,
  aborted: 0,
  ownKeys: 0,
  prompt: 0,
  completion: 0,
  cached: 0,
  reasoning: 0,
  charged: 0n,
  fee: 0n,
  cost: known === null ? null : 0n,
});

function addCall(
  row: Row,
  sumsOf: (day: number, provider: string, service: string) => OfferCalls,
  costOf: CostFinder,
): void {
  const call = fieldsOf(row['lock_detail'] as string);
  const run = fieldsOf(row['detail'] as string | null);
  // The lock of a run or of a batch: their calls are locks of their own. A continued call is counted by its end.
  if (call['primitive'] !== 'model' || call['run'] === true || call['batch'] === true || run['outcome'] === 'continued')
    return;
  const day = Math.floor(Number(row['resolved_at']) / DAY_MS);
  const attempts = Array.isArray(run['failedAttempts']) ? (run['failedAttempts'] as readonly unknown[]) : [];
  for (const attempt of attempts) {
    const { provider, service, status } = (attempt ?? {}) as Readonly<Record<string, unknown>>;
    const sums = sumsOf(day, textOf(provider), textOf(service));
    // A vendor bills no answer with an error status.
    if (typeof status === 'number' && status >= 400) sums.refused += 1;
    else sums.broken += 1;
  }
  if (row['state'] !== 'settled') {
    if (run['clientGone'] === true && attempts.length === 0)
      sumsOf(day, '', nameOf(textOf(call['service']))).aborted += 1;
    return;
  }
  const [provider, service] = [textOf(run['providerName']), textOf(run['service'])];
  const sums = sumsOf(day, provider, service);
  if (run['ownKey'] === true) {
    sums.ownKeys += 1;
    return;
  }
  const usage = fieldsOf(row['usage'] as string | null);
  sums.requests += 1;
  if (run['outcome'] === 'free') sums.free += 1;
  if (run['estimated'] === true) sums.measured += 1;
  const { flags } = run;
  if (Array.isArray(flags) && flags.some((flag) => CUT_CLAIMS.has(flag))) sums.claims += 1;
  sums.prompt += tokensOf(usage, 'prompt');
  sums.completion += tokensOf(usage, 'completion');
  sums.cached += countOf(run['cached']);
  sums.reasoning += countOf(run['reasoning']);
  sums.charged += row['charged'] as bigint;
  sums.fee += row['fee'] as bigint;
  const cost = costOfCall(usage, run, call, costOf);
  if (cost !== null && sums.cost !== null) sums.cost += cost;
}
