import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { offerId, toUsdNumber, formatUsd } from '#billing';
import { PRIMITIVES } from '#config';
import type { Caller } from '#accounts';
import type { Catalog } from '#catalog';
import { DOCUMENTED } from '#http';
import type { Pipeline } from '#call';
import { requireAdmission, type KeyStore, type AdmissionOf } from '#auth';
import {
  DAY_MS,
  dateOf,
  findUsage,
  USAGE_GROUPS,
  USAGE_ROWS_MAX,
  type UsageQuery,
  type UsageGroup,
  type UsageRow,
  daysOf,
  type DayRange,
  type UsageSums,
} from '#analytics';
import type { Database } from '#store';
import { listOf, objectOf } from '../route-schemas.ts';
import { ownKey } from '../account/generations.ts';
import { dayRangeSchema, documentedDay, parseDay, parseDayRange, dateRangeSchema } from '../day-range.ts';
import { CSV_TYPE, formatSchema, jsonOrCsv, savedAs, csvLine, csvUsd, type Cell } from '../csv.ts';
import { viewAsOf, viewRange, asOfSchema } from './public-view.ts';

interface OwnFiguresDeps {
  readonly admit: Pipeline['admit'];
  readonly keys: Pick<KeyStore, 'find' | 'list'>;
  readonly database: Pick<Database, 'snapshot'>;
  readonly catalog: Pick<Catalog, 'offers'>;
  readonly now: () => number;
}

interface OwnQuery {
  readonly start_date?: string;
  readonly end_date?: string;
  readonly group_by: string;
  readonly model?: string;
  readonly key?: string;
  readonly provider?: string;
  readonly primitive?: string;
  readonly format: 'json' | 'csv';
}

const KEY_HASH = {
  type: 'string',
  pattern: '^[0-9a-f]{64}$',
  'x-must-be': 'the hash of a key: 64 characters of 0-9 and a-f',
} as const;
const name = { type: 'string', minLength: 1, maxLength: 256 } as const;
const GROUP = USAGE_GROUPS.join('|');
const ownQuerySchema = {
  type: 'object',
  properties: {
    ...dayRangeSchema.properties,
    group_by: {
      type: 'string',
      maxLength: 64,
      default: 'day',
      description: `One or more of ${USAGE_GROUPS.join(', ')}, with commas.`,
      [DOCUMENTED]: { pattern: `^(?:${GROUP})(?:,(?:${GROUP}))*$` },
    },
    model: { ...name, description: 'Only calls of this service, of any primitive.' },
    key: { ...KEY_HASH, description: 'Only calls with this key, by its hash.' },
    provider: { ...name, description: 'Only calls that this provider served, by its id.' },
    primitive: { type: 'string', enum: PRIMITIVES },
    format: formatSchema,
  },
} as const;

/** The most keys whose labels are read. */
const KEYS_MAX = 1_000;

/** The routes for an account's own figures. Register it under `/api/v1`. */
export function ownFiguresRoutes(deps: OwnFiguresDeps): FastifyPluginAsync {
  return async (app) => {
    const admissionOf = requireAdmission(app, deps.admit);
    showUsage(app, deps, admissionOf);
    showActivity(app, deps, admissionOf);
  };
}

function showUsage(app: FastifyInstance, deps: OwnFiguresDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: 'Show your figures',
    operationId: 'ownAnalytics',
    description:
      'Sums of the calls of your account by day, service, key, provider and primitive; a key with a spending limit, a rate, an expiry, a list of services or a price to ask above sees only its own calls.',
    tags: ['Analytics'],
    querystring: ownQuerySchema,
    response: { 200: jsonOrCsv('The sums; with `format=csv` a file.', usageSchema) },
  };
  app.get<{ Querystring: OwnQuery }>(
    '/analytics/own',
    { config: { actsAs: 'viewer' }, schema },
    async (request, reply) => {
      const { query } = request;
      const { caller } = admissionOf(request);
      const range = parseDayRange(query, deps.now());
      const groups = readGroups(query.group_by);
      const { model, provider, primitive } = query;
      const key = await ownKey(deps.keys, caller, query.key, 'key');
      const { rows, asOf } = await readUsage(deps, {
        account: caller.account,
        range,
        groups,
        model,
        provider,
        primitive,
        key,
      });
      const data = viewUsage(rows, range, groups, await namesOf(deps, caller, groups));
      if (query.format === 'csv')
        return reply
          .header('content-disposition', savedAs(`usage-${dateOf(range.first)}-${dateOf(range.last)}.csv`))
          .type(CSV_TYPE)
          .serializer(String)
          .send(usageCsv(data, groups));
      return { data, totals: viewTotals(rows), group_by: groups, date_range: viewRange(range), as_of: viewAsOf(asOf) };
    },
  );
}

function readGroups(text: string): readonly UsageGroup[] {
  const names = text.split(',').map((part) => part.trim());
  const unknown = names.find((part) => !(USAGE_GROUPS as readonly string[]).includes(part));
  if (unknown !== undefined)
    throw new GatewayError('invalid_request', `group_by accepts ${USAGE_GROUPS.join(', ')}, with commas between them`, {
      param: 'group_by',
    });
  return USAGE_GROUPS.filter((group) => names.includes(group));
}

async function readUsage({ database }: OwnFiguresDeps, usageQuery: UsageQuery) {
  const usage = await database.snapshot((query) => findUsage(query, usageQuery));
  if (usage !== null) return usage;
  throw new GatewayError(
    'invalid_request',
    `The answer would have more than ${USAGE_ROWS_MAX} rows. Request fewer days or fewer groups`,
    { param: 'group_by' },
  );
}

async function namesOf(
  { keys, catalog }: OwnFiguresDeps,
  { account }: Caller,
  groups: readonly UsageGroup[],
): Promise<UsageNames> {
  const own = groups.includes('key') ? await keys.list(account, { offset: 0, limit: KEYS_MAX }) : [];
  const offers = groups.includes('provider') ? catalog.offers() : [];
  return {
    keys: new Map(own.map(({ hash, label }) => [hash, label])),
    providers: new Map(offers.map(({ provider }) => [provider.id, provider.name])),
  };
}

/** Days of the activity, including today. */
const ACTIVITY_DAYS = 30;

const activitySchema = objectOf({
  date: { type: 'string' },
  model: { type: 'string' },
  model_permaslug: { type: 'string' },
  endpoint_id: { type: 'string', description: 'Id of the offer.' },
  provider_name: { type: 'string' },
  requests: { type: 'integer' },
  usage: { type: 'number', description: 'USD.' },
  byok_usage_inference: { type: 'number', description: 'Always 0.' },
  prompt_tokens: { type: 'integer' },
  completion_tokens: { type: 'integer' },
  reasoning_tokens: { type: 'integer' },
  primitive: { type: 'string', enum: PRIMITIVES },
});

function showActivity(app: FastifyInstance, deps: OwnFiguresDeps, admissionOf: AdmissionOf): void {
  const querystring = {
    type: 'object',
    properties: {
      date: {
        type: 'string',
        pattern: '^\\d{4}-\\d{2}-\\d{2}$',
        'x-must-be': 'a date such as 2026-01-31',
        description: 'One UTC day of the last 30, `YYYY-MM-DD`.',
        [DOCUMENTED]: documentedDay,
      },
      api_key_hash: { ...KEY_HASH, description: 'Only calls with this key.' },
    },
  } as const;
  const schema = {
    summary: 'Show your activity',
    operationId: 'listActivity',
    description:
      'The last 30 days of your account, today included, by day, service and provider, in the shape of OpenRouter. A key with a spending limit, a rate, an expiry, a list of services or a price to ask above sees only its own calls.',
    tags: ['Analytics'],
    querystring,
    response: { 200: { description: 'The sums', ...listOf(activitySchema) } },
  };
  app.get<{ Querystring: { readonly date?: string; readonly api_key_hash?: string } }>(
    '/activity',
    { config: { actsAs: 'viewer' }, schema },
    async (request) => {
      const { caller } = admissionOf(request);
      const { date, api_key_hash: keyHash } = request.query;
      const last = Math.floor(deps.now() / DAY_MS);
      const range = date === undefined ? { first: last - ACTIVITY_DAYS + 1, last } : dayOf(date, last);
      const key = await ownKey(deps.keys, caller, keyHash, 'api_key_hash');
      const groups = ['day', 'model', 'provider', 'primitive'] as const;
      const { rows } = await readUsage(deps, { account: caller.account, range, groups, key });
      const { providers } = await namesOf(deps, caller, groups);
      const served = rows.filter(({ requests }) => requests > 0);
      return { data: served.map((row) => viewActivity(row, providers.get(row.provider) ?? row.provider)) };
    },
  );
}

function dayOf(date: string, last: number) {
  const day = parseDay(date, 'date');
  const range = { first: day, last: day };
  if (range.first > last - ACTIVITY_DAYS && range.first <= last) return range;
  throw new GatewayError('invalid_request', `date must be one of the last ${ACTIVITY_DAYS} days`, { param: 'date' });
}

const viewActivity = (row: UsageRow, providerName: string) => ({
  date: dateOf(row.day),
  model: row.model,
  model_permaslug: row.model,
  endpoint_id: offerId({ primitive: row.primitive, provider: row.provider, service: row.model }),
  provider_name: providerName,
  requests: row.requests,
  usage: toUsdNumber(row.charged),
  byok_usage_inference: 0,
  prompt_tokens: row.prompt,
  completion_tokens: row.completion,
  reasoning_tokens: row.reasoning,
  primitive: row.primitive,
});

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
  date: { type: 'string' },
  model: { type: 'string', description: 'The service that served, of any primitive.' },
  key: { type: ['string', 'null'], description: 'Hash of the key; null where no key was used.' },
  key_label: { type: ['string', 'null'] },
  provider: { type: ['string', 'null'], description: 'Public key; null where nobody served.' },
  provider_name: { type: ['string', 'null'] },
  primitive: { type: 'string', enum: PRIMITIVES },
};

const usageSchema = objectOf({
  data: {
    type: 'array',
    description: 'A row has the members of its groups and the sums.',
    items: objectOf({ ...groups, ...sums }, Object.keys(groups)),
  },
  totals: objectOf(sums),
  group_by: { type: 'array', items: { type: 'string' } },
  date_range: dateRangeSchema,
  as_of: asOfSchema,
});

/** Names that the table of sums doesn't have. */
interface UsageNames {
  /** Labels of keys, by hash. */
  readonly keys: ReadonlyMap<string, string>;
  /** Names of providers, by id. */
  readonly providers: ReadonlyMap<string, string>;
}

/**
 * The rows of an account's sums in the form of answers. If they are grouped by day only, days without calls get a row
 * too.
 */
function viewUsage(
  rows: readonly UsageRow[],
  range: DayRange,
  usageGroups: readonly UsageGroup[],
  names: UsageNames,
): readonly Readonly<Record<string, Cell>>[] {
  const view = (row: UsageRow) => ({ ...groupsOf(row, usageGroups, names), ...viewSums(row) });
  if (usageGroups.length !== 1 || usageGroups[0] !== 'day') return rows.map(view);
  const byDay = new Map(rows.map((row) => [row.day, row]));
  return daysOf(range).map((day) => view(byDay.get(day) ?? { ...NOTHING, day }));
}

const NOTHING: UsageRow = {
  day: 0,
  model: '',
  key: '',
  provider: '',
  primitive: '',
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
  usageGroups: readonly UsageGroup[],
  { keys, providers }: UsageNames,
): Record<string, Cell> {
  const cells: Record<string, Cell> = {};
  for (const group of usageGroups) {
    if (group === 'day') cells['date'] = dateOf(row.day);
    else if (group === 'model' || group === 'primitive') cells[group] = row[group];
    else if (group === 'key') Object.assign(cells, { key: row.key || null, key_label: keys.get(row.key) ?? null });
    else Object.assign(cells, { provider: row.provider || null, provider_name: providers.get(row.provider) ?? null });
  }
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

/** Adds up all rows. */
function viewTotals(rows: readonly UsageRow[]) {
  const totals: { -readonly [Name in keyof UsageRow]: UsageRow[Name] } = { ...NOTHING };
  for (const row of rows) {
    totals.requests += row.requests;
    totals.failed += row.failed;
    totals.charged += row.charged;
    totals.prompt += row.prompt;
    totals.completion += row.completion;
    totals.reasoning += row.reasoning;
    totals.cached += row.cached;
    totals.images += row.images;
    totals.seconds += row.seconds;
  }
  return viewSums(totals);
}

/** Writes the rows as CSV. The columns are the members of the rows. */
function usageCsv(rows: readonly Readonly<Record<string, Cell>>[], usageGroups: readonly UsageGroup[]): string {
  const columns = Object.keys({ ...groupsOf(NOTHING, usageGroups, NO_NAMES), ...viewSums(NOTHING) });
  const lines = rows.map((row) =>
    csvLine(columns.map((name) => (name === 'cost_usd' ? csvUsd(BigInt(row['cost_micro_usdc']!)) : row[name]!))),
  );
  return csvLine(columns) + lines.join('');
}

const NO_NAMES: UsageNames = { keys: new Map(), providers: new Map() };
