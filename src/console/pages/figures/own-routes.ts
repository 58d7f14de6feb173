import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { offerId, toUsdNumber } from '#billing/amounts';
import { PRIMITIVES } from '#config';
import { DOCUMENTED } from '#http';
import { ownerOf } from '#tasks';
import { partyOf } from '#wire/places';
import type { Pipeline } from '#call';
import { refuseRestricted, requireAdmission, type KeyStore, type AdmissionOf } from '#auth';
import { DAY_MS, dateOf, type UsageRow } from '#analytics';
import { listOf, objectOf } from '../route-schemas.ts';
import { ownKey } from '../account/generations.ts';
import { documentedDay, parseDay } from '../day-range.ts';
import { jsonOrCsv } from '../csv.ts';
import { answerFocus, focusAnswer, type FocusDeps } from './focus.ts';
import {
  answerStatement,
  monthParam,
  type StatementQuery,
  statementQuerySchema,
  statementSchema,
} from './statement.ts';
import {
  answerUsage,
  KEY_HASH,
  namesOf,
  readUsage,
  type UsageDeps,
  type UsageParams,
  usageQuerySchema,
  usageSchema,
} from './usage.ts';

interface OwnFiguresDeps extends Omit<UsageDeps, 'party'>, Pick<FocusDeps, 'publicUrl'> {
  readonly admit: Pipeline['admit'];
  readonly keys: Pick<KeyStore, 'find' | 'labels' | 'names'>;
}

/** The routes for an account's own figures. Register it under `/api/v1`. */
export function ownFiguresRoutes(deps: OwnFiguresDeps): FastifyPluginAsync {
  return async (app) => {
    const admissionOf = requireAdmission(app, deps.admit);
    showStatement(app, deps, admissionOf);
    exportFocus(app, deps, admissionOf);
    showUsage(app, deps, admissionOf);
    showActivity(app, deps, admissionOf);
  };
}

function showUsage(app: FastifyInstance, deps: OwnFiguresDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: 'Show your figures',
    operationId: 'ownAnalytics',
    description:
      'Sums of the calls of your account by day, week or month (in UTC), service, key, provider and primitive; a key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above sees only its own calls.',
    tags: ['Analytics'],
    querystring: usageQuerySchema,
    response: { 200: jsonOrCsv('The sums; with `format=csv` a file.', usageSchema) },
  };
  app.get<{ Querystring: UsageParams }>(
    '/analytics/own',
    { config: { actsAs: 'viewer' }, schema },
    async (request, reply) => {
      const { caller } = admissionOf(request);
      const key = await ownKey(deps.keys, caller, request.query.key, 'key');
      return answerUsage(
        { ...deps, party: partyOf(ownerOf(caller)) },
        caller.account,
        { ...request.query, key },
        reply,
      );
    },
  );
}

function showStatement(app: FastifyInstance, deps: OwnFiguresDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: 'Show the statement of a month',
    operationId: 'ownStatement',
    description:
      'Every movement of your money in a month, with the balance before and after it: charged calls, credits, debits, refunds, deposits, withdrawals. The opening balance and all movements sum to the closing balance, exactly.',
    tags: ['Analytics'],
    params: objectOf({ month: monthParam }),
    querystring: statementQuerySchema,
    response: { 200: jsonOrCsv('The statement; with `format=csv` a file.', statementSchema) },
  };
  app.get<{ Params: { readonly month: string }; Querystring: StatementQuery }>(
    '/statements/:month',
    { config: { actsAs: 'viewer' }, schema },
    async (request, reply) => {
      const { account, key } = admissionOf(request).caller;
      await refuseRestricted(deps.keys, key, 'see the statement of the account');
      return answerStatement(deps, account, request.params.month, request.query, reply);
    },
  );
}

function exportFocus(app: FastifyInstance, deps: OwnFiguresDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: 'Export a month as FOCUS',
    operationId: 'ownFocus',
    description:
      'Usage and cost of a UTC month in the columns of FOCUS 1.2, the FinOps Open Cost and Usage Specification: a row for each meter of each charged call, and for each refund.',
    tags: ['Analytics'],
    params: objectOf({ month: monthParam }),
    response: { 200: focusAnswer },
  };
  app.get<{ Params: { readonly month: string } }>(
    '/statements/:month/focus',
    { config: { actsAs: 'viewer' }, schema },
    async (request, reply) => {
      const { account, key } = admissionOf(request).caller;
      await refuseRestricted(deps.keys, key, 'see the statement of the account');
      return answerFocus(deps, request.params.month, Readable.from([{ account, label: null }]), {
        request,
        reply,
        party: account,
      });
    },
  );
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
    // Clients of OpenRouter's API send more.
    additionalProperties: true,
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
      'The last 30 days of your account, today included, by day, service and provider, in the shape of OpenRouter. A key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above sees only its own calls.',
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
      const { rows } = await readUsage(
        { ...deps, party: partyOf(ownerOf(caller)) },
        { account: caller.account, range, groups, key },
      );
      const { providers } = await namesOf(deps, rows, groups);
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
