import type { FastifyReply } from 'fastify';
import { GatewayError } from '#errors';
import { tagsText } from '#accounts/names';
import { archivedUntil } from '#billing';
import { formatUsd } from '#billing/amounts';
import { DOCUMENTED } from '#http';
import { type AccountStatement, DAY_MS, dateOf, readStatement, type TimeZone, timeZoneOf, UTC } from '#analytics';
import type { KeyStore } from '#auth/keys';
import type { Database } from '#store';
import { dayOf } from '../account/archived-calls.ts';
import { KINDS, WITH_REASON } from '../account/movements.ts';
import { CSV_TYPE, csvLine, csvUsd, formatSchema, savedAs } from '../csv.ts';
import { objectOf, titled } from '../route-schemas.ts';

/* The statement of a month of an account, for its owner and for the operator. */

interface StatementDeps {
  readonly database: Pick<Database, 'query' | 'snapshot'>;
  readonly keys: Pick<KeyStore, 'names'>;
  readonly now: () => number;
  /** The party of the snapshots, see Database.snapshot. Default: the account. */
  readonly party?: string;
}

export interface StatementQuery {
  readonly time_zone?: string;
  readonly calls: 'each' | 'daily';
  readonly format: 'json' | 'csv';
}

/** The most single calls of a statement. They are held in memory. */
const CALLS_MAX = 100_000;

export const timeZoneSchema = {
  type: 'string',
  maxLength: 64,
  default: UTC.name,
  description:
    'The time zone of days, weeks and months, by its IANA name, such as `Europe/Berlin`. Another than UTC adds calls up one by one, which takes longer, and knows no calls in archives.',
  [DOCUMENTED]: { pattern: '^(?:UTC|Europe/Berlin|America/New_York|Asia/Kathmandu)$' },
} as const;

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/;
export const monthParam = {
  type: 'string',
  maxLength: 10,
  description: 'The month, such as `2026-10`.',
  [DOCUMENTED]: { pattern: '^20[0-9]{2}-(?:0[1-9]|1[0-2])$' },
} as const;

export const statementQuerySchema = {
  type: 'object',
  properties: {
    time_zone: timeZoneSchema,
    calls: {
      type: 'string',
      enum: ['each', 'daily'],
      default: 'each',
      description: `\`each\`: a movement for each charged call, at most ${CALLS_MAX}. \`daily\`: one for all charged calls of a day and a service.`,
    },
    format: formatSchema,
  },
} as const;

/** Reads a time zone. Throws GatewayError `invalid_request`. */
export function parseTimeZone(name: string = UTC.name): TimeZone {
  const zone = timeZoneOf(name);
  if (zone !== null) return zone;
  throw new GatewayError(
    'invalid_request',
    'time_zone must be the name of a time zone in the IANA database, such as Europe/Berlin or UTC',
    { param: 'time_zone' },
  );
}

/** The first day of a month and that of the next, in days since 1970. Throws GatewayError `invalid_request`. */
export function monthDays(month: string): readonly [first: number, next: number] {
  const [, year, number] = MONTH.exec(month) ?? [];
  if (year === undefined)
    throw new GatewayError('invalid_request', 'The month must be a year and a month such as 2026-10', {
      param: 'month',
    });
  return [Date.UTC(Number(year), Number(number) - 1) / DAY_MS, Date.UTC(Number(year), Number(number)) / DAY_MS];
}

/** Refuses a time whose calls are in an archive. Throws GatewayError `archived`. */
export async function refuseArchivedTime({ database }: Pick<StatementDeps, 'database'>, from: number, param: string) {
  const until = await archivedUntil(database.query);
  if (from >= until) return;
  throw new GatewayError(
    'archived',
    `Calls before ${dayOf(until)} are archived, so this can only be made for the time since then. The sums of earlier UTC days are at /analytics/own, and the operator has the calls in archives`,
    { param },
  );
}

const micro = (description: string) => ({ type: 'integer', description: `Micro-USD. ${description}` });
export const statementSchema = titled(
  'Statement',
  objectOf({
    data: objectOf({
      month: { type: 'string' },
      time_zone: { type: 'string' },
      from: { type: 'string', description: 'The first instant of the month in this time zone.' },
      until: { type: 'string', description: 'The first instant after the month.' },
      complete: { type: 'boolean', description: 'Whether the month is over.' },
      opening_micro_usdc: micro('The balance before the month, with what running calls had locked.'),
      closing_micro_usdc: micro('The balance after it: `opening_micro_usdc` and all movements, exactly.'),
      charged_micro_usdc: micro('For all calls of the month.'),
      charged_usd: { type: 'string' },
      charged_calls: { type: 'integer' },
      movements: {
        type: 'array',
        description: 'In the order of their times.',
        items: titled(
          'StatementMovement',
          objectOf({
            at: { type: 'string', description: 'When the call ended or the money moved (RFC 3339, UTC).' },
            date: { type: 'string', description: 'The day in the time zone.' },
            kind: {
              type: 'string',
              enum: ['call', 'calls', ...new Set(Object.values(KINDS)), 'other'],
              description: '`calls`: those of a day and a service. The others are as in `/movements`.',
            },
            id: { type: ['string', 'null'] },
            calls: { type: 'integer', description: 'Charged calls in it.' },
            service: { type: ['string', 'null'] },
            primitive: { type: ['string', 'null'] },
            key: { type: ['string', 'null'], description: 'Hash of the key of a single call.' },
            key_name: {
              type: ['string', 'null'],
              description: 'Its name, also of a key that was deleted; null for one whose name is not known.',
            },
            tags: { type: 'object', additionalProperties: { type: 'string' } },
            reason: { type: ['string', 'null'] },
            amount_micro_usdc: micro('Negative if it left the account.'),
            amount_usd: { type: 'string' },
            balance_micro_usdc: micro('After it.'),
          }),
        ),
      },
    }),
  }),
);

/** Answers with the statement of a month, in both forms. `reply`: for a file. */
export async function answerStatement(
  deps: StatementDeps,
  account: string,
  month: string,
  { time_zone: zoneName, calls, format }: StatementQuery,
  reply: Pick<FastifyReply, 'header' | 'type' | 'serializer' | 'send'>,
) {
  const zone = parseTimeZone(zoneName);
  const [first, next] = monthDays(month);
  const [from, until] = [zone.startOf(first), zone.startOf(next)];
  const now = deps.now();
  if (from > now)
    throw new GatewayError('invalid_request', `${month} has not begun in ${zone.name}`, { param: 'month' });
  await refuseArchivedTime(deps, from, 'month');
  const callsMax = calls === 'each' ? CALLS_MAX : 0;
  const statement = await deps.database.snapshot(deps.party ?? account, (query) =>
    readStatement(query, { account, zone, from, until, callsMax }),
  );
  if (statement === null)
    throw new GatewayError(
      'unprocessable',
      `The account has more than ${CALLS_MAX} charged calls in ${month}. calls=daily adds those of a day up, and /generations?format=csv has each call`,
      { param: 'calls' },
    );
  const names = await deps.keys.names(account);
  const movements = statement.movements.map((movement) => viewMovement(movement, zone, names));
  if (format === 'csv')
    return reply
      .header('content-disposition', savedAs(`statement-${month}.csv`))
      .type(CSV_TYPE)
      .serializer(String)
      .send(statementCsv(statement, movements));
  return {
    data: {
      month,
      time_zone: zone.name,
      from: new Date(from).toISOString(),
      until: new Date(until).toISOString(),
      complete: until <= now,
      opening_micro_usdc: Number(statement.opening),
      closing_micro_usdc: Number(statement.closing),
      charged_micro_usdc: Number(statement.charged),
      charged_usd: formatUsd(statement.charged),
      charged_calls: statement.calls,
      movements,
    },
  };
}

type MovementView = ReturnType<typeof viewMovement>;

function viewMovement(
  movement: AccountStatement['movements'][number],
  zone: TimeZone,
  names: ReadonlyMap<string, string>,
) {
  const { at, amount, balance } = movement;
  const shared = {
    at: new Date(at).toISOString(),
    date: dateOf(zone.dayAt(at)),
    amount_micro_usdc: Number(amount),
    amount_usd: formatUsd(amount),
    balance_micro_usdc: Number(balance),
  };
  if (movement.kind === 'calls') {
    const { id, calls, service, primitive, key, tags } = movement;
    const kind = id === null ? 'calls' : 'call';
    const keyName = key === null ? null : (names.get(key) ?? null);
    return { ...shared, kind, id, calls, service, primitive, key, key_name: keyName, tags, reason: null };
  }
  const kind = KINDS[movement.id.split(':', 1)[0]!] ?? 'other';
  return {
    ...shared,
    kind,
    id: movement.id,
    calls: 0,
    service: null,
    primitive: null,
    key: null,
    key_name: null,
    tags: {},
    reason: WITH_REASON.has(kind) ? movement.memo : null,
  };
}

const COLUMNS = [
  'at',
  'date',
  'kind',
  'id',
  'calls',
  'service',
  'primitive',
  'key',
  'key_name',
  'tags',
  'reason',
  'amount',
  'balance',
];

/** The lines of a statement, between one with the opening and one with the closing balance. */
function statementCsv({ opening, closing }: AccountStatement, movements: readonly MovementView[]): string {
  const edge = (kind: string, balance: bigint) =>
    csvLine([null, null, kind, null, null, null, null, null, null, null, null, null, csvUsd(balance)]);
  const lines = movements.map((one) =>
    csvLine([
      one.at,
      one.date,
      one.kind,
      one.id,
      one.calls,
      one.service,
      one.primitive,
      one.key,
      one.key_name,
      tagsText(one.tags),
      one.reason,
      csvUsd(BigInt(one.amount_micro_usdc)),
      csvUsd(BigInt(one.balance_micro_usdc)),
    ]),
  );
  return csvLine(COLUMNS) + edge('opening', opening) + lines.join('') + edge('closing', closing);
}
