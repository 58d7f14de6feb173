import type { FastifyInstance } from 'fastify';
import type { CallerOf } from '#auth';
import type { KeyStore } from '#auth/keys';
import type { AlikeRefusals, LastRefusals } from '#observe';
import { ADMINISTRATION, objectOf, titled } from '../route-schemas.ts';
import { accountParams, type AccountParams, type AdminAccountsDeps, findAccount } from './admin-accounts.ts';
import { ownKey } from './generations.ts';

export interface RefusalsDeps {
  readonly refusals: Pick<LastRefusals, 'refusalsOf' | 'since'>;
}

/** null where no gateway runs, so that nobody could answer. */
export interface AdminRefusalsDeps {
  readonly refusals: RefusalsDeps['refusals'] | null;
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
    reasons: {
      type: 'array',
      description:
        'The different words of these answers, at most 5, the newest first. Words that differ in numbers alone are the same. Older ones are counted in `requests` alone',
      items: titled(
        'RefusalReason',
        objectOf({
          message: { type: 'string' },
          requests: { type: 'integer', description: 'How many were refused in these words' },
          last_at: { type: 'string', description: 'RFC 3339' },
        }),
      ),
    },
    request_id: { type: 'string', description: '`x-request-id` of the newest answer' },
  }),
);
const listSchema = titled(
  'RefusedRequestsSince',
  objectOf({
    data: { type: 'array', items: refusalSchema },
    since: {
      type: 'string',
      description: 'When the process that answers has started: it knows none of before (RFC 3339)',
    },
  }),
);

const DESCRIPTION =
  'requests that were refused before anything was locked, and so have no record of a call: no money, a limit, no right, a wrong name or body. Those with the same error, for the same thing, by the same key are one row: at most 20, the newest first. It is what the process that answers has seen since its start (`since`).';

const viewRefusals = ({ since, refusalsOf }: RefusalsDeps['refusals'], account: string, key: string | null) => ({
  data: refusalsOf(account, key).map(viewAlike),
  since: iso(since),
});

const iso = (at: number): string => new Date(at).toISOString();

const viewAlike = ({ key, firstAt, lastAt, requestId, reasons, ...alike }: AlikeRefusals) => ({
  code: alike.code,
  status: alike.status,
  target: alike.target,
  key: key?.label ?? null,
  api_key: key?.hash ?? null,
  requests: alike.requests,
  first_at: iso(firstAt),
  last_at: iso(lastAt),
  message: alike.message,
  reasons: reasons.map(({ message, requests, lastAt: at }) => ({ message, requests, last_at: iso(at) })),
  request_id: requestId,
});

export function addOwnRefusalsRoute(
  app: FastifyInstance,
  { refusals, keys }: RefusalsDeps & { readonly keys: Pick<KeyStore, 'find'> },
  callerOf: CallerOf,
): void {
  const schema = {
    summary: 'List your refused requests',
    description: `Your newest ${DESCRIPTION} A restricted key sees its own.`,
    tags: ['Account'],
    response: { 200: listSchema },
  };
  app.get('/refusals', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const caller = callerOf(request);
    const key = await ownKey(keys, caller, undefined, 'key');
    return viewRefusals(refusals, caller.account, key ?? null);
  });
}

export function addAdminRefusalsRoute(app: FastifyInstance, deps: AdminAccountsDeps & AdminRefusalsDeps): void {
  const { refusals } = deps;
  if (refusals === null) return;
  const schema = {
    ...ADMINISTRATION,
    summary: 'List the refused requests of an account',
    operationId: 'listRefusalsOfAnAccount',
    description: `The newest ${DESCRIPTION}`,
    params: accountParams,
    response: { 200: listSchema },
  };
  app.get<{ Params: AccountParams }>('/accounts/:id/refusals', { schema }, async ({ params }) => {
    const { account } = await findAccount(params.id, deps);
    return viewRefusals(refusals, account, null);
  });
}
