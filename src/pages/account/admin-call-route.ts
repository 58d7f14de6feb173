import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#wire';
import type { FoundLocks, Ledger, LocksQuery, LockRecord } from '#billing';
import { dataOf, objectOf } from '../answer-schemas.ts';
import { findAccount, type AdminAccountsDeps } from './admin-accounts.ts';
import { viewTree } from './generation-tree.ts';
import { generationSchema, viewCall } from './generation-view.ts';
import { findGenerations } from './generations-page.ts';

export interface AdminCallDeps extends Omit<AdminAccountsDeps, 'ledger'> {
  readonly ledger: AdminAccountsDeps['ledger'] & Pick<Ledger, 'find' | 'children'>;
  readonly findLocks: (asked: LocksQuery) => Promise<FoundLocks>;
}

/** Adds the route that shows one call of any account. */
export function addAdminCallRoute(app: FastifyInstance, deps: AdminCallDeps, administration: object): void {
  const schema = {
    ...administration,
    summary: 'Show a call of any account',
    operationId: 'showCallOfAnAccount',
    description:
      'Who made the call, of what, when and at which provider, every movement of its money, and all calls that were made under it, without receipts. The ledger finds a call by its own id. By the id of its request (`x-request-id`) it is looked for only with `account`, among the last 10,000 calls of that account.',
    params: objectOf({
      id: { type: 'string', maxLength: 128, description: 'Id of the call; with `account` also that of its request.' },
    }),
    querystring: {
      type: 'object',
      properties: { account: { type: 'string', maxLength: 256, description: 'Id of the account that made the call.' } },
    },
    response: { 200: dataOf(generationSchema) },
  };
  app.get<{ Params: { readonly id: string }; Querystring: { readonly account?: string } }>(
    '/calls/:id',
    { schema },
    async ({ params: { id }, query: { account } }) => {
      const record = (await deps.ledger.find(id)) ?? (await findOfRequest(id, account, deps));
      return { data: await viewTree(record, deps.ledger, null, deps.networks) };
    },
  );
}

/** The newest call of the account's request. Rejects with GatewayError. */
async function findOfRequest(id: string, named: string | undefined, deps: AdminCallDeps): Promise<LockRecord> {
  if (named === undefined)
    throw new GatewayError(
      'not_found',
      'There is no call with this id. If it is the x-request-id of a call, name the account that made it, too',
      { param: 'id' },
    );
  const { account } = await findAccount(named, deps);
  const view = (record: LockRecord) => viewCall(record, deps.networks);
  const { data, next_cursor: rest } = await findGenerations(deps.findLocks, view, account, { request: id, limit: 1 });
  const record = data.length === 0 ? null : await deps.ledger.find(data[0]!.id);
  if (record !== null) return record;
  const where = rest === null ? 'No call of this account' : 'None of the last 10,000 calls of this account';
  throw new GatewayError('not_found', `${where} has this id, or a request with this id`, { param: 'id' });
}
