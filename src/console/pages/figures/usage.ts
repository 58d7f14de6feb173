import type { FastifyReply } from 'fastify';
import { GatewayError } from '#errors';
import { formatUsd } from '#billing/amounts';
import { PRIMITIVES } from '#config';
import type { Catalog } from '#catalog';
import { DOCUMENTED } from '#http';
import { printable } from '#security';
import type { KeyStore } from '#auth';
import type { ConsumerStore } from '#accounts';
import {
  added,
  dateOf,
  daysOf,
  type DayRange,
  findTagNames,
  findUsage,
  findZonedUsage,
  MEMBER_TAG,
  periodOf,
  PERIODS,
  USAGE_GROUPS,
  UTC,
  USAGE_ROWS_MAX,
  type UsageGroup,
  type UsageQuery,
  type UsageRow,
  type UsageSums,
} from '#analytics';
import type { Database } from '#store';
import { objectOf, titled } from '../route-schemas.ts';
import { parseTimeZone, refuseArchivedTime, timeZoneSchema } from './statement.ts';
import { dateRangeSchema, type DayRangeQuery, dayRangeSchema, parseDayRange } from '../day-range.ts';
import { CSV_TYPE, csvLine, csvUsd, formatSchema, savedAs, type Cell } from '../csv.ts';
import { asOfSchema, viewAsOf, viewRange } from './public-view.ts';

/* The sums of calls: of an account, for its owner and for the operator, and of all accounts. */

export interface UsageDeps {
  readonly keys: Pick<KeyStore, 'labels'>;
  readonly database: Pick<Database, 'query' | 'snapshot'>;
  readonly catalog: Pick<Catalog, 'offers'>;
  readonly now: () => number;
  /** The party of the snapshots, see Database.snapshot. */
  readonly party: string;
}

export interface UsageParams extends DayRangeQuery {
  readonly group_by: string;
  readonly model?: string;
  readonly key?: string | undefined;
  readonly provider?: string;
  readonly primitive?: string;
  readonly format: 'json' | 'csv';
  readonly time_zone?: string;
}

export const KEY_HASH = {
  type: 'string',
  pattern: '^[0-9a-f]{64}$',
  'x-must-be': 'the hash of a key: 64 characters of 0-9 and a-f',
} as const;
const name = { type: 'string', minLength: 1, maxLength: 256 } as const;
/** The groups of one account. */
const ACCOUNT_GROUPS = USAGE_GROUPS.filter((group) => group !== 'account');
const documentedGroups = (groups: readonly UsageGroup[]) => ({
  pattern: `^(?:${groups.join('|')})(?:,(?:${groups.join('|')}))*(?:,tag:[a-z]{1,32})?$`,
});
const describedGroups = (groups: readonly UsageGroup[]) =>
  `One or more of ${groups.join(', ')}, with commas. Of day, week and month the smallest groups, and the others are those in which it begins. \`tag:<name>\` groups by the values of a tag, and calls without it are one group; it cannot be combined with member.`;
export const usageQuerySchema = {
  type: 'object',
  properties: {
    ...dayRangeSchema.properties,
    start_date: {
      ...dayRangeSchema.properties.start_date,
      description:
        'First day, `YYYY-MM-DD` or an ISO 8601 time within it. Default: 7 days before the last. Grouped by week or month, the week or month of that day is whole.',
    },
    group_by: {
      type: 'string',
      maxLength: 128,
      default: 'day',
      description: describedGroups(ACCOUNT_GROUPS),
      [DOCUMENTED]: documentedGroups(ACCOUNT_GROUPS),
    },
    model: { ...name, description: 'Only calls of this service, of any primitive.' },
    key: { ...KEY_HASH, description: 'Only calls with this key, by its hash.' },
    provider: { ...name, description: 'Only calls that this provider served, by its id.' },
    primitive: { type: 'string', enum: PRIMITIVES },
    format: formatSchema,
    time_zone: timeZoneSchema,
  },
} as const;

export const allUsageQuerySchema = {
  type: 'object',
  properties: {
    ...usageQuerySchema.properties,
    group_by: {
      ...usageQuerySchema.properties.group_by,
      default: 'account',
      description: describedGroups(USAGE_GROUPS),
      [DOCUMENTED]: documentedGroups(USAGE_GROUPS),
    },
  },
} as const;

/**
 * Answers with the sums of an account's calls, or of those with one key. `account`: null for those of all accounts.
 * `reply`: for a file.
 */
export async function answerUsage(
  deps: UsageDeps & { readonly consumers?: Pick<ConsumerStore, 'labels'> },
  account: string | null,
  { key, ...query }: UsageParams,
  reply: Pick<FastifyReply, 'header' | 'type' | 'serializer' | 'send'>,
) {
  const zone = parseTimeZone(query.time_zone);
  const { groups, tag } = readGroups(query.group_by, account === null ? USAGE_GROUPS : ACCOUNT_GROUPS);
  const range = parseDayRange(query, deps.now(), { zone, period: periodOf(groups) });
  if (zone !== UTC) await refuseArchivedTime(deps, zone.startOf(range.first), 'start_date');
  const { model, provider, primitive } = query;
  const question = { account, range, groups, tag, model, provider, primitive, key };
  const { rows, asOf, tags } = await readUsage(deps, question, zone);
  const data = viewUsage(rows, range, { groups, tag }, await namesOf(deps, rows, groups));
  if (query.format === 'csv')
    return reply
      .header('content-disposition', savedAs(`usage-${dateOf(range.first)}-${dateOf(range.last)}.csv`))
      .type(CSV_TYPE)
      .serializer(String)
      .send(usageCsv(data, { groups, tag }));
  return {
    data,
    totals: viewSums(rows.reduce<UsageSums>(added, NOTHING)),
    group_by: tag === undefined || tag === MEMBER_TAG ? groups : [...groups, `${TAG}${tag}`],
    tags,
    date_range: viewRange(range),
    as_of: viewAsOf(asOf),
  };
}

interface ReadGroups {
  readonly groups: readonly UsageGroup[];
  readonly tag: string | undefined;
}

const TAG = 'tag:';

function readGroups(text: string, known: readonly UsageGroup[]): ReadGroups {
  const parts = text.split(',').map((part) => part.trim());
  const tags = parts.filter((part) => part.startsWith(TAG) && part !== TAG);
  const names = parts.filter((part) => !tags.includes(part));
  if (tags.length > 1) throw new GatewayError('invalid_request', 'group_by accepts one tag', { param: 'group_by' });
  const unknown = names.find((part) => !(known as readonly string[]).includes(part));
  if (unknown !== undefined)
    throw new GatewayError(
      'invalid_request',
      `group_by accepts ${known.join(', ')} and tag:<name>, with commas between them, not ${JSON.stringify(printable(unknown, 64))}`,
      {
        param: 'group_by',
      },
    );
  const groups = known.filter((group) => names.includes(group));
  if (!groups.includes('member')) return { groups, tag: tags[0]?.slice(TAG.length) };
  if (tags.length > 0)
    throw new GatewayError('invalid_request', 'group_by accepts either member or a tag', { param: 'group_by' });
  return { groups, tag: MEMBER_TAG };
}

/** With the names of the tags of the range. */
export async function readUsage(
  { database, party }: Pick<UsageDeps, 'database' | 'party'>,
  usageQuery: UsageQuery,
  zone = UTC,
) {
  const { account, range } = usageQuery;
  const [usage, tags] = await database.snapshot(party, async (query) => [
    await (zone === UTC ? findUsage(query, usageQuery) : findZonedUsage(query, usageQuery, zone)),
    await findTagNames(query, account, range),
  ]);
  if (usage === 'many')
    throw new GatewayError(
      'unprocessable',
      `These days have too many calls to be added up in ${zone.name}. Request fewer days, or days of UTC`,
      { param: 'time_zone' },
    );
  if (usage !== null) return { ...usage, tags };
  throw new GatewayError(
    'invalid_request',
    `The answer would have more than ${USAGE_ROWS_MAX} rows. Request fewer days or fewer groups`,
    { param: 'group_by' },
  );
}

export async function namesOf(
  { keys, catalog, consumers }: Pick<UsageDeps, 'keys' | 'catalog'> & { consumers?: Pick<ConsumerStore, 'labels'> },
  rows: readonly UsageRow[],
  groups: readonly UsageGroup[],
): Promise<UsageNames> {
  const offers = groups.includes('provider') ? catalog.offers() : [];
  const all = (column: 'key' | 'account') => [...new Set(rows.map((row) => row[column]))].filter((id) => id !== '');
  return {
    keys: groups.includes('key') ? await keys.labels(all('key')) : new Map(),
    accounts: groups.includes('account') && consumers ? await consumers.labels(all('account')) : new Map(),
    providers: new Map(offers.map(({ provider }) => [provider.id, provider.name])),
  };
}

const count = { type: 'integer' };
const sums = {
  requests: { ...count, description: 'Settled calls.' },
  failed: { ...count, description: 'Calls that were not charged because they failed.' },
  prompt_tokens: count,
  completion_tokens: count,
  reasoning_tokens: count,
  cached_tokens: count,
  total_tokens: count,
  images: { ...count, description: 'Images that were made.' },
  seconds: { ...count, description: 'Seconds of video, or of work that is charged by seconds.' },
  cost_micro_usdc: { ...count, description: 'Micro-USD.' },
  cost_usd: { type: 'string', description: 'Decimal.' },
};
const groups = {
  date: { type: 'string', description: 'Of `day`.' },
  week: { type: 'string', description: 'The Monday with which the week begins.' },
  month: { type: 'string', description: '`YYYY-MM`' },
  model: { type: 'string', description: 'The service that served, of any primitive.' },
  key: { type: ['string', 'null'], description: 'Hash of the key; null where no key was used.' },
  key_label: { type: ['string', 'null'] },
  member: {
    type: ['string', 'null'],
    description: 'The account of the member with whose key it was called; null for keys of the account itself.',
  },
  provider: { type: ['string', 'null'], description: 'Public key; null where nobody served.' },
  provider_name: { type: ['string', 'null'] },
  primitive: { type: 'string', enum: PRIMITIVES },
  tag: { type: ['string', 'null'], description: 'The value of the tag; null for calls without it.' },
};

const rowsOf = (name: string, members: typeof groups) => ({
  data: {
    type: 'array',
    description: 'A row has the members of its groups and the sums.',
    items: titled(name, objectOf({ ...members, ...sums }, Object.keys(members))),
  },
});
const aroundRows = {
  totals: titled('UsageTotals', objectOf(sums)),
  group_by: { type: 'array', items: { type: 'string' } },
  tags: {
    type: 'array',
    items: { type: 'string' },
    description: 'Names of the tags that calls of these days have: each can be grouped by.',
  },
  date_range: dateRangeSchema,
  as_of: asOfSchema,
};
const accountGroup = {
  account: { type: 'string', description: 'Id of the account.' },
  account_label: { type: ['string', 'null'] },
};

export const usageSchema = titled('UsageFigures', objectOf({ ...rowsOf('UsageRow', groups), ...aroundRows }));
export const allUsageSchema = titled(
  'AllUsageFigures',
  objectOf({ ...rowsOf('AllUsageRow', { ...accountGroup, ...groups }), ...aroundRows }),
);

interface UsageNames {
  /** Labels of accounts that have one. */
  readonly accounts: ReadonlyMap<string, string>;
  /** Labels of keys, by hash. */
  readonly keys: ReadonlyMap<string, string>;
  /** Names of providers, by id. */
  readonly providers: ReadonlyMap<string, string>;
}

/**
 * The rows of sums in the form of answers. If they are grouped by a period only, periods without calls get
 * a row too.
 */
function viewUsage(
  rows: readonly UsageRow[],
  range: DayRange,
  grouped: ReadGroups,
  names: UsageNames,
): readonly Readonly<Record<string, Cell>>[] {
  const view = (row: UsageRow) => ({ ...groupsOf(row, grouped, names), ...viewSums(row) });
  const period = periodOf(grouped.groups);
  if (grouped.groups.length !== 1 || grouped.tag !== undefined || period === undefined) return rows.map(view);
  const byDay = new Map(rows.map((row) => [row.day, row]));
  return [...new Set(daysOf(range).map(PERIODS[period]))].map((day) => view(byDay.get(day) ?? { ...NOTHING, day }));
}

const NOTHING: UsageRow = {
  day: 0,
  account: '',
  model: '',
  key: '',
  provider: '',
  primitive: '',
  tag: '',
  requests: 0,
  failed: 0,
  charged: 0n,
  prompt: 0,
  completion: 0,
  reasoning: 0,
  cached: 0,
  images: 0,
  seconds: 0,
};

function groupsOf(
  row: UsageRow,
  { groups, tag }: ReadGroups,
  { accounts, keys, providers }: UsageNames,
): Record<string, Cell> {
  const cells: Record<string, Cell> = {};
  for (const group of groups) {
    if (group === 'day') cells['date'] = dateOf(row.day);
    else if (group === 'week') cells['week'] = dateOf(row.day);
    else if (group === 'month') cells['month'] = dateOf(row.day).slice(0, 7);
    else if (group === 'account')
      Object.assign(cells, { account: row.account, account_label: accounts.get(row.account) ?? null });
    else if (group === 'member') cells['member'] = row.tag || null;
    else if (group === 'model' || group === 'primitive') cells[group] = row[group];
    else if (group === 'key') Object.assign(cells, { key: row.key || null, key_label: keys.get(row.key) ?? null });
    else Object.assign(cells, { provider: row.provider || null, provider_name: providers.get(row.provider) ?? null });
  }
  if (tag !== undefined && tag !== MEMBER_TAG) cells['tag'] = row.tag || null;
  return cells;
}

function viewSums(row: UsageSums) {
  return {
    requests: row.requests,
    failed: row.failed,
    prompt_tokens: row.prompt,
    completion_tokens: row.completion,
    reasoning_tokens: row.reasoning,
    cached_tokens: row.cached,
    total_tokens: row.prompt + row.completion,
    images: row.images,
    seconds: row.seconds,
    cost_micro_usdc: Number(row.charged),
    cost_usd: formatUsd(row.charged),
  };
}

/** Writes the rows as CSV. The columns are the members of the rows. */
function usageCsv(rows: readonly Readonly<Record<string, Cell>>[], grouped: ReadGroups): string {
  const columns = Object.keys({ ...groupsOf(NOTHING, grouped, NO_NAMES), ...viewSums(NOTHING) });
  const lines = rows.map((row) =>
    csvLine(columns.map((name) => (name === 'cost_usd' ? csvUsd(BigInt(row['cost_micro_usdc']!)) : row[name]!))),
  );
  return csvLine(columns) + lines.join('');
}

const NO_NAMES: UsageNames = { accounts: new Map(), keys: new Map(), providers: new Map() };
