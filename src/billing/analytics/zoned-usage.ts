import type { Query } from '#store';
import { resolvedCalls, type TimeRange } from './account-calls.ts';
import { type CallFacts, DAY_MS, readCall } from './call-facts.ts';
import { findState } from './roll-up-state.ts';
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
  const { whole, rest } = splitAt(zone, usage);
  const rows = new Map<string, UsageRow>();
  const add = (row: UsageRow) => {
    const name = JSON.stringify([row.day, row.account, row.model, row.key, row.provider, row.primitive, row.tag]);
    const before = rows.get(name);
    rows.set(name, before === undefined ? row : { ...row, ...added(before, row) });
  };
  let [calls, asOf] = [0, 0];
  const groups = usage.groups.filter((group) => group !== 'day');
  for (const part of whole) {
    for (const row of await findRows(query, { ...usage, groups }, part)) add(row);
    if (rows.size > USAGE_ROWS_MAX) return null;
  }
  for await (const page of pagesOf(query, usage, rest)) {
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
  if (whole.length > 0) ({ asOf } = await findState(query));
  return { rows: sortUsage([...rows.values()]), asOf };
}

/** The UTC days that lie within one period of the zone, and the time between them. */
function splitAt(zone: TimeZone, { range, groups }: UsageQuery) {
  const whole: UsagePart[] = [];
  const rest: { readonly from: number; until: number }[] = [];
  const addRest = (from: number, until: number) => {
    const last = rest.at(-1);
    if (last?.until === from) last.until = until;
    else if (from < until) rest.push({ from, until });
  };
  for (const part of partsOf(range, periodOf(groups))) {
    const [from, until] = [zone.startOf(part.first), zone.startOf(part.last + 1)];
    const first = Math.ceil(from / DAY_MS);
    const last = Math.floor(until / DAY_MS) - 1;
    if (first > last) {
      addRest(from, until);
      continue;
    }
    whole.push({ first, last, day: part.day });
    addRest(from, first * DAY_MS);
    addRest((last + 1) * DAY_MS, until);
  }
  return { whole, rest: rest as readonly TimeRange[] };
}

/** Of all accounts: those that the sums know, so the first calls of an account come with its sums. */
async function* pagesOf(query: Query, { account }: UsageQuery, times: readonly TimeRange[]) {
  for (const time of times) {
    const days = { first: UTC.dayAt(time.from), last: UTC.dayAt(time.until - 1) };
    const accounts = account === null ? await findAccounts(query, days) : [account];
    for (const each of accounts) yield* resolvedCalls(query, each, time);
  }
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
