import type { Query } from '#store';
import { resolvedCalls, type TimeRange } from './account-calls.ts';
import { type CallFacts, readCall } from './call-facts.ts';
import {
  added,
  findAccounts,
  periodOf,
  PERIODS,
  sortUsage,
  type UsageQuery,
  type UsageRow,
  USAGE_ROWS_MAX,
} from './own-usage.ts';
import type { TimeZone } from './time-zone.ts';

/** More calls are not added up for one answer. */
const CALLS_MAX = 1_000_000;

/**
 * The same as findUsage for days of a time zone. The sums of days in the database are of UTC, so this adds the calls
 * themselves up. null for too many rows, and `many` for too many calls. No call of the time may be in an archive.
 */
export async function findZonedUsage(
  query: Query,
  usage: UsageQuery,
  zone: TimeZone,
): Promise<{ readonly rows: readonly UsageRow[]; readonly asOf: number } | 'many' | null> {
  const { range } = usage;
  const time = { from: zone.startOf(range.first), until: zone.startOf(range.last + 1) };
  const rows = new Map<string, UsageRow>();
  let [calls, asOf] = [0, 0];
  for await (const page of pagesOf(query, usage, time)) {
    calls += page.length;
    if (calls > CALLS_MAX) return 'many';
    for (const row of page) {
      const call = readCall(row, noCost);
      if (call === null || !isWanted(call, usage)) continue;
      asOf = Math.max(asOf, call.at);
      const one = rowOf(call, usage, zone);
      const name = JSON.stringify([one.day, one.account, one.model, one.key, one.provider, one.primitive, one.tag]);
      const before = rows.get(name);
      rows.set(name, before === undefined ? one : { ...one, ...added(before, one) });
    }
    if (rows.size > USAGE_ROWS_MAX) return null;
  }
  return { rows: sortUsage([...rows.values()]), asOf };
}

/** Of all accounts: those that the sums know, so the first calls of an account come with its sums. */
async function* pagesOf(query: Query, { account, range }: UsageQuery, time: TimeRange) {
  // A day of a zone has parts of two UTC days.
  const days = { first: range.first - 1, last: range.last + 1 };
  const accounts = account === null ? await findAccounts(query, days) : [account];
  for (const each of accounts) yield* resolvedCalls(query, each, time);
}

/** A consumer's sums have no cost of the operator. */
const noCost = () => null;

const isWanted = (call: CallFacts, { model = '', key = '', provider = '', primitive = '' }: UsageQuery): boolean =>
  (model === '' || call.service === model) &&
  (key === '' || call.key === key) &&
  (provider === '' || call.provider === provider) &&
  (primitive === '' || call.primitive === primitive);

/** A call as the row of its groups. A call that was not served counts as failed, as in SumsOfCalls. */
function rowOf(call: CallFacts, { groups, tag }: UsageQuery, zone: TimeZone): UsageRow {
  const period = periodOf(groups);
  const isServed = call.cause === '';
  const figure = (value: number) => (isServed ? value : 0);
  return {
    day: period === undefined ? 0 : PERIODS[period](zone.dayAt(call.at)),
    account: groups.includes('account') ? call.account : '',
    model: groups.includes('model') ? call.service : '',
    key: groups.includes('key') ? call.key : '',
    provider: groups.includes('provider') ? call.provider : '',
    primitive: groups.includes('primitive') ? call.primitive : '',
    tag: tag === undefined ? '' : (call.tags.find(([name]) => name === tag)?.[1] ?? ''),
    requests: figure(1),
    failed: isServed ? 0 : 1,
    charged: isServed ? call.charged : 0n,
    prompt: figure(call.prompt),
    completion: figure(call.completion),
    reasoning: figure(call.reasoning),
    cached: figure(call.cached),
    images: figure(call.images),
    seconds: figure(call.seconds),
  };
}
