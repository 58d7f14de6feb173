import type { Query, Row } from '#store';
import { resolvedCallsOfDays } from './account-calls.ts';
import { type CallFacts, DAY_MS, readCall } from './call-facts.ts';
import { findState, type RollUpState } from './roll-up-state.ts';
import {
  added,
  findAccounts,
  findRows,
  partsOf,
  periodOf,
  PERIODS,
  sortUsage,
  type UsagePart,
  type UsageQuery,
  type UsageRow,
  USAGE_ROWS_MAX,
} from './own-usage.ts';
import { type TimeZone, UTC } from './time-zone.ts';

/** More calls are not added up for one answer. */
const CALLS_MAX = 1_000_000;

/**
 * The same as findUsage for days of a time zone. The sums in the database are of UTC days, so this adds up the calls of
 * the UTC days in which a period begins: all of them, if it is grouped by day. null for too many rows, and `many` for
 * too many calls. No call of the time may be in an archive.
 */
export async function findZonedUsage(
  query: Query,
  usage: UsageQuery,
  zone: TimeZone,
): Promise<{ readonly rows: readonly UsageRow[]; readonly asOf: number } | 'many' | null> {
  const rows = new Map<string, UsageRow>();
  const add = (row: UsageRow) => {
    const name = JSON.stringify([row.day, row.account, row.model, row.key, row.provider, row.primitive, row.tag]);
    const before = rows.get(name);
    rows.set(name, before === undefined ? row : { ...row, ...added(before, row) });
  };
  const state = await findState(query);
  const { parts, days } = splitAt(zone, usage, state);
  const groups = usage.groups.filter((group) => group !== 'day');
  for (const part of parts) {
    for (const row of await findRows(query, { ...usage, groups }, part)) add(row);
    if (rows.size > USAGE_ROWS_MAX) return null;
  }
  let [calls, asOf] = [0, parts.length === 0 ? 0 : state.asOf];
  for await (const page of pagesOf(query, usage, zone, days)) {
    calls += page.length;
    if (calls > CALLS_MAX) return 'many';
    for (const row of page) {
      const call = readCall(row, noCost);
      if (call === null || !isWanted(call, usage)) continue;
      asOf = Math.max(asOf, call.at);
      add(rowOf(call, usage, zone));
    }
    if (rows.size > USAGE_ROWS_MAX) return null;
  }
  return { rows: sortUsage([...rows.values()]), asOf };
}

/**
 * `parts`: the UTC days that lie within one period of the zone, and whose sums are there and complete. `days`: all
 * other UTC days of the time.
 */
function splitAt(zone: TimeZone, { range, groups }: UsageQuery, { usageSince, asOf }: RollUpState) {
  const parts: UsagePart[] = [];
  const days: number[] = [];
  for (const part of partsOf(range, periodOf(groups))) {
    const [from, until] = [zone.startOf(part.first), zone.startOf(part.last + 1)];
    const first = Math.max(Math.ceil(from / DAY_MS), usageSince);
    const last = Math.min(UTC.dayAt(until), UTC.dayAt(asOf)) - 1;
    if (first <= last) parts.push({ first, last, day: part.day });
    for (let day = UTC.dayAt(from); day * DAY_MS < until; day++)
      if ((day < first || day > last) && days.at(-1) !== day) days.push(day);
  }
  return { parts, days };
}

/** Of all accounts: those that the sums know, so the first calls of an account come with its sums. */
async function* pagesOf(
  query: Query,
  { account, range }: UsageQuery,
  zone: TimeZone,
  days: readonly number[],
): AsyncGenerator<readonly Row[], void, undefined> {
  const time = { from: zone.startOf(range.first), until: zone.startOf(range.last + 1) };
  const [first, last] = [days[0], days.at(-1)];
  if (first === undefined || last === undefined) return;
  const accounts = account === null ? await findAccounts(query, { first, last }) : [account];
  for (const each of accounts) yield* resolvedCallsOfDays(query, each, time, days);
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
