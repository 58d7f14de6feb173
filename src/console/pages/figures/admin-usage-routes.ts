import { Readable } from 'node:stream';
import type { FastifyPluginAsync } from 'fastify';
import type { AdminGate, KeyStore } from '#auth';
import { type LockRecord, OPERATOR } from '#billing';
import { ADMINISTRATION, type FundPage, fundPageSchema, objectOf, pageOf } from '../route-schemas.ts';
import { jsonOrCsv } from '../csv.ts';
import { allAccounts, answerFocus, focusAnswer, type FocusDeps } from './focus.ts';
import {
  answerStatement,
  monthParam,
  type StatementQuery,
  statementQuerySchema,
  statementSchema,
} from './statement.ts';
import {
  allUsageQuerySchema,
  allUsageSchema,
  answerUsage,
  type UsageDeps,
  type UsageParams,
  usageQuerySchema,
  usageSchema,
} from './usage.ts';
import { accountParams, findAccount, type AccountParams, type AdminAccountsDeps } from '../account/admin-accounts.ts';
import { callSchema, viewCall } from '../account/generation-view.ts';
import { MOVEMENTS, type MovementsDeps, movementSchema, readMovements } from '../account/movements.ts';
import {
  findGenerations,
  type GenerationsDeps,
  generationsQuerySchema,
  type GenerationsQuery,
} from '../account/generations.ts';

interface AdminUsageDeps
  extends
    AdminAccountsDeps,
    Omit<UsageDeps, 'party' | 'keys'>,
    MovementsDeps,
    Pick<FocusDeps, 'publicUrl'>,
    Omit<GenerationsDeps, 'keys'> {
  readonly gate: AdminGate;
  readonly keys: Pick<KeyStore, 'labels' | 'names'>;
}

/**
 * The routes with which the operator sees what an account called and spent, in the forms that its owner gets. Register
 * it under `/admin/v1`.
 */
export const adminUsageRoutes =
  (deps: AdminUsageDeps): FastifyPluginAsync =>
  async (app) => {
    app.addHook('onRequest', deps.gate);
    const usage = {
      ...ADMINISTRATION,
      summary: "Show an account's figures",
      operationId: 'usageOfAnAccount',
      description:
        'Sums of the calls of the account by day, week or month (in UTC), service, key, provider and primitive, as its owner gets them from `/analytics/own`.',
      params: accountParams,
      querystring: usageQuerySchema,
      response: { 200: jsonOrCsv('The sums; with `format=csv` a file.', usageSchema) },
    };
    app.get<{ Params: AccountParams; Querystring: UsageParams }>(
      '/accounts/:id/usage',
      { schema: usage },
      async ({ params, query }, reply) => {
        const { account } = await findAccount(params.id, deps);
        return answerUsage({ ...deps, party: OPERATOR }, account, query, reply);
      },
    );
    const allUsage = {
      ...ADMINISTRATION,
      summary: 'Show the figures of all accounts',
      operationId: 'usageOfAllAccounts',
      description:
        'Sums of the calls of all accounts by account, day, week or month, service, key, member, provider, primitive and tag. They are those of the accounts, added up.',
      querystring: allUsageQuerySchema,
      response: { 200: jsonOrCsv('The sums; with `format=csv` a file.', allUsageSchema) },
    };
    app.get<{ Querystring: UsageParams }>('/usage', { schema: allUsage }, async ({ query }, reply) =>
      answerUsage({ ...deps, party: OPERATOR }, null, query, reply),
    );

    const statement = {
      ...ADMINISTRATION,
      summary: 'Show the statement of a month of an account',
      operationId: 'statementOfAnAccount',
      description:
        'Every movement of its money in a month, with the balance before and after it, as its owner gets it from `/statements/{month}`.',
      params: objectOf({ ...accountParams.properties, month: monthParam }),
      querystring: statementQuerySchema,
      response: { 200: jsonOrCsv('The statement; with `format=csv` a file.', statementSchema) },
    };
    app.get<{ Params: AccountParams & { readonly month: string }; Querystring: StatementQuery }>(
      '/accounts/:id/statements/:month',
      { schema: statement },
      async ({ params, query }, reply) => {
        const { account } = await findAccount(params.id, deps);
        return answerStatement({ ...deps, party: OPERATOR }, account, params.month, query, reply);
      },
    );

    const ofAccount = {
      ...ADMINISTRATION,
      summary: 'Export a month of an account as FOCUS',
      operationId: 'focusOfAnAccount',
      description: 'Usage and cost of the account in a UTC month in the columns of FOCUS 1.2.',
      params: objectOf({ ...accountParams.properties, month: monthParam }),
      response: { 200: focusAnswer },
    };
    app.get<{ Params: AccountParams & { readonly month: string } }>(
      '/accounts/:id/statements/:month/focus',
      { schema: ofAccount },
      async (request, reply) => {
        const { id, month } = request.params;
        const { account, label } = await findAccount(id, deps);
        return answerFocus(deps, month, Readable.from([{ account, label }]), { request, reply, party: OPERATOR });
      },
    );
    const ofAll = {
      ...ADMINISTRATION,
      summary: 'Export a month of all accounts as FOCUS',
      operationId: 'focusOfAllAccounts',
      description: 'Usage and cost of all accounts in a UTC month in the columns of FOCUS 1.2.',
      params: objectOf({ month: monthParam }),
      response: { 200: focusAnswer },
    };
    app.get<{ Params: { readonly month: string } }>('/focus/:month', { schema: ofAll }, async (request, reply) => {
      const labelOf = async (account: string) => (await deps.consumers.find(account))?.label ?? null;
      const accounts = allAccounts(deps.database.query, labelOf);
      return answerFocus(deps, request.params.month, accounts, { request, reply, party: OPERATOR });
    });

    const calls = {
      ...ADMINISTRATION,
      summary: "List an account's calls",
      operationId: 'callsOfAnAccount',
      description:
        'Calls of the account, the newest first, also those that run. A page can have fewer calls than `limit`, or none, before the end of the list: continue with `next_cursor` until it is null. Calls in archives are not in the list.',
      params: accountParams,
      querystring: generationsQuerySchema,
      response: {
        200: objectOf({
          data: { type: 'array', items: callSchema },
          next_cursor: { type: ['string', 'null'], description: '`cursor` of the next page; null at the end.' },
        }),
      },
    };
    app.get<{ Params: AccountParams; Querystring: GenerationsQuery }>(
      '/accounts/:id/calls',
      { schema: calls },
      async ({ params, query }) => {
        const { account } = await findAccount(params.id, deps);
        return findGenerations(deps, (record: LockRecord) => viewCall(record, deps.networks), account, query);
      },
    );

    const movements = {
      ...ADMINISTRATION,
      summary: "List the movements of an account's money",
      operationId: 'movementsOfAnAccount',
      description: MOVEMENTS.replace('`/generations`', '`/accounts/{id}/calls`'),
      params: accountParams,
      querystring: fundPageSchema,
      response: { 200: pageOf(movementSchema) },
    };
    app.get<{ Params: AccountParams; Querystring: FundPage }>(
      '/accounts/:id/movements',
      { schema: movements },
      async ({ params, query }) => {
        const { account } = await findAccount(params.id, deps);
        return readMovements(deps, account, query, true);
      },
    );
  };
