import { GatewayError } from '#errors';
import type { FoundLocks, LocksQuery, LockRecord, Refunds } from '#billing';
import { PRIMITIVES } from '#config';
import { DOCUMENTED } from '#http';
import type { Caller } from '#accounts';
import { isRestricted, type KeyStore } from '#auth/keys';
import { STATES, type CallView } from './generation-view.ts';
import { documentedInstant } from '../day-range.ts';
import { parseDay, parseTime } from './body-fields.ts';
import { csvLine, csvUsd } from '../csv.ts';

export interface GenerationsQuery {
  readonly cursor?: string;
  readonly limit: number;
  readonly service?: string;
  readonly primitive?: string;
  readonly key?: string;
  readonly from?: string;
  readonly to?: string;
  readonly state?: LockRecord['state'];
  readonly outcome?: string;
  readonly failed?: boolean;
  readonly request?: string;
}

export interface GenerationsDeps {
  readonly findLocks: (query: LocksQuery) => Promise<FoundLocks>;
  readonly refunds: Pick<Refunds, 'amounts'>;
}

/** A call of a list. `refunded_micro_usdc`: absent without a refund. */
type ListedCall = CallView & { readonly refunded_micro_usdc?: number };

interface GenerationsPage {
  readonly data: readonly ListedCall[];
  /** null on the last page. */
  readonly next_cursor: string | null;
}

export const generationsQuerySchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    cursor: { type: 'string', maxLength: 256, description: '`next_cursor` of the page before.' },
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 50, description: 'Calls at most.' },
    service: {
      type: 'string',
      minLength: 1,
      maxLength: 256,
      description: 'Name of the service that was called or that served.',
    },
    primitive: { type: 'string', enum: PRIMITIVES },
    key: {
      type: 'string',
      pattern: '^[0-9a-f]{64}$',
      'x-must-be': 'the hash of a key: 64 characters of 0-9 and a-f',
      description: 'Hash of the key that was used.',
    },
    from: {
      type: 'string',
      maxLength: 40,
      description: 'Calls that began at this time or later: a UTC date, or a time with time zone (RFC 3339).',
      [DOCUMENTED]: documentedInstant,
    },
    to: {
      type: 'string',
      maxLength: 40,
      description: 'Calls that began at this time or before; a date counts to its end.',
      [DOCUMENTED]: documentedInstant,
    },
    state: { type: 'string', enum: STATES },
    failed: {
      type: 'boolean',
      description: 'Only calls that failed, or only those that did not, whatever their state and outcome.',
    },
    outcome: {
      type: 'string',
      enum: [
        'complete',
        'cut',
        'free',
        'over_cap',
        'failed',
        'continued',
        'cancelled',
        'stopped',
        'completed',
        'expired',
      ],
    },
  },
} as const;

/** The most parts of the ledger that one request reads if few calls match. */
const SLICES_MAX = 5;

/**
 * Reads one page of an account's calls, newest first. The ledger is read in parts, so a page may be shorter than
 * requested, or empty, and still have a next page. Throws GatewayError `invalid_request`.
 */
export async function findGenerations(
  { findLocks, refunds }: GenerationsDeps,
  view: (record: LockRecord) => CallView,
  account: string,
  query: GenerationsQuery,
): Promise<GenerationsPage> {
  const { service, primitive, key, state, outcome, failed, request, limit } = query;
  const from = query.from === undefined ? 0 : instant(query.from, 'from');
  const to = query.to === undefined ? LATEST : instant(query.to, 'to');
  if (from > to)
    throw new GatewayError('invalid_request', `from must not be after to (${query.to})`, {
      param: 'from',
    });
  const field = (name: string, value: string) => `${JSON.stringify(name)}:${JSON.stringify(value)}`;
  const matches = (call: CallView) =>
    (primitive === undefined || call.primitive === primitive) &&
    (key === undefined || call.api_key === key) &&
    (service === undefined || call.model === service || call.service === service) &&
    (outcome === undefined || call.outcome === outcome) &&
    (failed === undefined || call.failed === failed) &&
    (request === undefined || call.request_id === request);
  const data: CallView[] = [];
  let place: Place | null = query.cursor === undefined ? { at: to + 1, id: '' } : readCursor(query.cursor);
  for (let slice = 0; place !== null && data.length < limit && slice < SLICES_MAX; slice++) {
    const page: FoundLocks = await findLocks({
      account,
      before: place,
      from,
      limit: limit - data.length,
      ...(state === undefined ? {} : { state }),
      ...(failed === undefined ? {} : { failed }),
      ...(primitive === undefined ? {} : { begins: `{${field('primitive', primitive)}` }),
      ...(key === undefined ? {} : { holds: field('key', key) }),
      ...(request === undefined ? {} : { holds: field('requestId', request) }),
      ...(service === undefined ? {} : { eitherHolds: field('service', service) }),
    });
    data.push(...page.records.map(view).filter(matches));
    place = page.next;
  }
  const refunded = await refunds.amounts(data.filter(({ usage }) => usage > 0).map(({ id }) => id));
  const whole = data.map((call) => {
    const amount = refunded.get(call.id);
    return amount === undefined ? call : { ...call, refunded_micro_usdc: Number(amount) };
  });
  return { data: whole, next_cursor: place === null ? null : writeCursor(place) };
}

/** Later than every call, and small enough for both engines. */
export const LATEST = 8_640_000_000_000_000;

type Place = LocksQuery['before'];

export const writeCursor = ({ at, id }: Place): string => Buffer.from(`${at} ${id}`).toString('base64url');

/** Throws GatewayError `invalid_request` for a text that is not of `writeCursor`. */
export function readCursor(text: string): Place {
  const [, at = '', id = ''] = /^(\d{1,16}) ([!-~]{0,128})$/.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  if (at === '')
    throw new GatewayError('invalid_request', 'cursor must be the next_cursor of a page of this list', {
      param: 'cursor',
    });
  return { at: Number(at), id };
}

const DAY = /^\d{4}-\d\d-\d\d$/;
const DAY_MS = 86_400_000;

function instant(text: string, param: 'from' | 'to'): number {
  const day = DAY.test(text);
  const at = day ? parseDay(text) : parseTime(text);
  if (Number.isNaN(at))
    throw new GatewayError(
      'invalid_request',
      `${param} must be a date such as 2026-01-31, or a time with time zone such as 2026-01-31T12:00:00Z`,
      {
        param,
      },
    );
  return day && param === 'to' ? at + DAY_MS - 1 : at;
}

const PAGE = 500;

type CallsPage = Awaited<ReturnType<typeof findGenerations>>;

const COLUMNS = [
  'id',
  'created_at',
  'resolved_at',
  'state',
  'outcome',
  'primitive',
  'model',
  'tool',
  'provider',
  'provider_name',
  'key',
  'key_name',
  'prompt_tokens',
  'completion_tokens',
  'cost_usd',
  'cost_micro_usdc',
  'latency_ms',
  'duration_ms',
  'finish_reason',
  'error',
  'parent',
  'tags',
  'refunded_micro_usdc',
];

const lineOf = (call: ListedCall, names: ReadonlyMap<string, string>): string =>
  csvLine([
    call.id,
    call.created_at,
    call.resolved_at,
    call.state,
    call.outcome,
    call.primitive,
    call.model,
    call.tool,
    call.provider,
    call.provider_name,
    call.api_key,
    names.get(call.api_key ?? '') ?? null,
    call.tokens_prompt,
    call.tokens_completion,
    csvUsd(BigInt(call.cost_micro_usdc)),
    call.cost_micro_usdc,
    call.latency,
    call.generation_time,
    call.finish_reason,
    call.error,
    call.parent,
    Object.entries(call.tags)
      .map(([name, value]) => `${name}=${value}`)
      .join('; '),
    call.refunded_micro_usdc ?? 0,
  ]);

/**
 * Returns the lines of a CSV file with every matching call of an account, newest first. The calls are read while the
 * client downloads. Throws GatewayError `invalid_request` before the first byte.
 */
export async function generationsCsv(
  deps: GenerationsDeps & { readonly keys: Pick<KeyStore, 'names'> },
  view: (record: LockRecord) => CallView,
  account: string,
  query: GenerationsQuery,
): Promise<AsyncGenerator<string>> {
  const pageAt = (cursor?: string) =>
    findGenerations(deps, view, account, { ...query, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) });
  const [first, names] = await Promise.all([pageAt(), deps.keys.names(account)]);
  return linesFrom(first, names, pageAt);
}

async function* linesFrom(
  first: CallsPage,
  names: ReadonlyMap<string, string>,
  pageAt: (cursor: string) => Promise<CallsPage>,
): AsyncGenerator<string> {
  yield csvLine(COLUMNS);
  for (let page = first; ;) {
    yield page.data.map((call) => lineOf(call, names)).join('');
    if (page.next_cursor === null) return;
    page = await pageAt(page.next_cursor);
  }
}

/**
 * Returns the hash of the key whose calls the caller may see: the requested key, or for a restricted key only the key
 * itself. undefined means all calls of the account. Throws GatewayError `permission_denied` if a restricted key asks
 * for another key.
 */
export async function ownKey(
  keys: Pick<KeyStore, 'find'>,
  { key }: Caller,
  keyHash: string | undefined,
  param: string,
): Promise<string | undefined> {
  if (!(await isRestricted(keys, key))) return keyHash;
  if (keyHash !== undefined && keyHash !== key!.hash)
    throw new GatewayError(
      'permission_denied',
      'A key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above sees only its own calls',
      { param },
    );
  return key!.hash;
}
