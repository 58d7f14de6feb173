import type { FastifyInstance } from 'fastify';
import type { CallerOf } from '#auth';
import type { KeyStore } from '#auth/keys';
import type { AlikeRefusals, LastRefusals } from '#observe';
import { ADMINISTRATION, listOf, objectOf, titled } from '../route-schemas.ts';
import { accountParams, type AccountParams, type AdminAccountsDeps, findAccount } from './admin-accounts.ts';
import { ownKey } from './generations.ts';

export interface RefusalsDeps {
  readonly refusalsOf: LastRefusals['refusalsOf'];
}

/** null where no gateway runs, so that nobody could answer. */
export interface AdminRefusalsDeps {
  readonly refusalsOf: LastRefusals['refusalsOf'] | null;
}

const refusalSchema = titled(
  'RefusedRequests',
  objectOf({
    code: { type: 'string', description: '`error.code` of the answers below `/v1`' },
    status: { type: 'integer', description: 'HTTP status of this error outside of MCP and A2A' },
    target: {
      type: 'string',
      description:
        'The called service; for a request that did not become a call, its protocol and service, or its method and route.',
    },
    key: { type: ['string', 'null'], description: 'Name of the key; null for a wallet or a session' },
    api_key: { type: ['string', 'null'], description: 'Hash of the key' },
    requests: { type: 'integer', description: 'How many were refused alike' },
    first_at: { type: 'string', description: 'RFC 3339' },
    last_at: { type: 'string', description: 'RFC 3339' },
    message: { type: 'string', description: 'The words of the newest answer, without a wrong value that it names' },
    request_id: { type: 'string', description: '`x-request-id` of the newest answer' },
  }),
);
const DESCRIPTION =
  'requests that were refused before anything was locked, and so have no record of a call: no money, a limit, no right, a wrong name or body. Those with the same error, for the same thing, by the same key are one row: at most 20, the newest first. It is what the process that answers has seen since its start.';

const viewRefusals = ({ key, firstAt, lastAt, requestId, code, status, target, requests, message }: AlikeRefusals) => ({
  code,
  status,
  target,
  key: key?.label ?? null,
  api_key: key?.hash ?? null,
  requests,
  first_at: new Date(firstAt).toISOString(),
  last_at: new Date(lastAt).toISOString(),
  message,
  request_id: requestId,
});

export function addOwnRefusalsRoute(
  app: FastifyInstance,
  { refusalsOf, keys }: RefusalsDeps & { readonly keys: Pick<KeyStore, 'find'> },
  callerOf: CallerOf,
): void {
  const schema = {
    summary: 'List your refused requests',
    description: `Your newest ${DESCRIPTION} A restricted key sees its own.`,
    tags: ['Account'],
    response: { 200: listOf(refusalSchema) },
  };
  app.get('/refusals', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const caller = callerOf(request);
    const key = await ownKey(keys, caller, undefined, 'key');
    return { data: refusalsOf(caller.account, key ?? null).map(viewRefusals) };
  });
}

export function addAdminRefusalsRoute(app: FastifyInstance, deps: AdminAccountsDeps & AdminRefusalsDeps): void {
  const { refusalsOf } = deps;
  if (refusalsOf === null) return;
  const schema = {
    ...ADMINISTRATION,
    summary: 'List the refused requests of an account',
    operationId: 'listRefusalsOfAnAccount',
    description: `The newest ${DESCRIPTION}`,
    params: accountParams,
    response: { 200: listOf(refusalSchema) },
  };
  app.get<{ Params: AccountParams }>('/accounts/:id/refusals', { schema }, async ({ params }) => {
    const { account } = await findAccount(params.id, deps);
    return { data: refusalsOf(account, null).map(viewRefusals) };
  });
}
