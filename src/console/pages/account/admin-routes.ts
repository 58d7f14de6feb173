import { type FindArchived, refuseArchived } from './archived-calls.ts';
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import type { AccountTotals, Ledger, FoundLocks, LocksQuery, LockRecord, Refunds } from '#billing';
import { DOCUMENTED } from '#http';
import type { AdminGate } from '#auth';
import { ACCOUNT_ID_PATTERN } from '#accounts/names';
import { ACCOUNT_STATES, type AccountState } from '#accounts';
import { GatewayError } from '#errors';
import { ADMINISTRATION, dataOf, listOf, objectOf, pageSchema, type PageRange } from '../route-schemas.ts';
import type { KeysDeps } from './keys.ts';
import type { AdminKeysDeps } from './key-routes.ts';
import {
  accountParams,
  accountSchema,
  findAccount,
  newAccountId,
  viewAccount,
  viewSeller,
  type AdminAccountsDeps,
  type NewAccountBody,
  type AccountParams,
} from './admin-accounts.ts';
import { addCreditRoute, addDebitRoute, type OperatorTransferDeps } from './operator-transfers.ts';
import { addAdminKeyRoutes } from './key-routes.ts';
import { addAdminMembersRoutes, type MembersDeps } from './members.ts';
import { addAdminLimitsRoutes } from './limits.ts';
import { addNotesRoutes, type NotesDeps } from './notes-routes.ts';
import { addAdminRefusalsRoute, type AdminRefusalsDeps } from './refusals-routes.ts';
import { addAdminStatesRoutes, type LabelDeps } from './admin-states-routes.ts';
import { addEndCallRoute, type EndCallDeps } from './end-call-route.ts';
import { addRefundRoute, type RefundDeps } from './refund-route.ts';
import { labelTaken, readLabel } from './label.ts';
import { viewWhole, generationSchema, type GenerationDeps } from './call-tree.ts';
import { viewCall } from './generation-view.ts';
import { findGenerations } from './generations.ts';

interface AdminDeps
  extends
    AdminCallDeps,
    NotesDeps,
    AdminRefusalsDeps,
    Pick<EndCallDeps, 'endCall'>,
    RefundDeps,
    AdminKeysDeps,
    MembersDeps,
    OperatorTransferDeps,
    LabelDeps {
  readonly keys: KeysDeps['keys'];
  readonly members: MembersDeps['members'];
  readonly gate: AdminGate;
  readonly ledger: Pick<Ledger, 'balance' | 'budget' | 'children' | 'find' | 'isFunded' | 'spentOf' | 'transfer'>;
  readonly refunds: Refunds;
  readonly totals: (account: string) => Promise<AccountTotals>;
}

interface AccountsQuery extends PageRange {
  readonly state?: AccountState;
  readonly label?: string;
}
const CREDIT = { adminRole: 'credit' } as const;
const oneAccountSchema = dataOf(accountSchema);

/** The operator's routes for accounts, credit and keys. Register it under `/admin/v1`. */
export function adminRoutes(deps: AdminDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', deps.gate);
    createAccount(app, deps);
    listAccounts(app, deps);
    showAccount(app, deps);
    addCreditRoute(app, deps);
    addAdminCallRoute(app, deps);
    addEndCallRoute(app, deps);
    addRefundRoute(app, deps);
    addDebitRoute(app, deps);
    addAdminStatesRoutes(app, deps);
    addAdminKeyRoutes(app, deps);
    addAdminLimitsRoutes(app, deps);
    addAdminMembersRoutes(app, deps);
    addNotesRoutes(app, deps);
    addAdminRefusalsRoute(app, deps);
  };
}

function createAccount(app: FastifyInstance, deps: AdminDeps): void {
  const properties = {
    name: {
      type: 'string',
      maxLength: 64,
      description: 'Small letters, digits and hyphens; the account is `tollgate:local:<name>`.',
      [DOCUMENTED]: { pattern: '^[a-z0-9-]{1,64}$' },
    },
    account: {
      type: 'string',
      maxLength: 128,
      description: 'Instead of a name: a wallet in CAIP-10, or any account id.',
      [DOCUMENTED]: { pattern: ACCOUNT_ID_PATTERN },
    },
    label: { type: 'string', maxLength: 128, description: 'A name for people.' },
  };
  const schema = {
    ...ADMINISTRATION,
    summary: 'Create an account',
    description:
      'Name the account by a `name`, or by the wallet that it belongs to. For an account that exists, the answer is 200 with the unchanged account, also if it has another label. A label that another account has as its label or name is refused with 422.',
    body: {
      type: 'object',
      additionalProperties: false,
      examples: [{ name: 'acme', label: 'Acme Ltd' }],
      [DOCUMENTED]: { allOf: [{ oneOf: [{ required: ['name'] }, { required: ['account'] }] }] },
      properties,
    },
    response: { 200: oneAccountSchema, 201: oneAccountSchema },
  };
  app.post<{ Body: NewAccountBody | undefined }>('/accounts', { schema, config: CREDIT }, async (request, reply) => {
    const body = request.body ?? {};
    const account = newAccountId(body, deps.networks);
    const label = readLabel(body.label ?? body.name ?? '', account);
    const newAccount = await deps.consumers.create(account, label);
    if (newAccount === null) throw labelTaken(label);
    const { created, consumer } = newAccount;
    return reply.code(created ? 201 : 200).send({ data: await viewAccount(consumer, deps) });
  });
}

function listAccounts(app: FastifyInstance, deps: AdminDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'List accounts',
    description:
      'Accounts that were created here, and wallets that have a key or have paid in, the oldest first, with their balances.',
    querystring: {
      ...pageSchema,
      properties: {
        ...pageSchema.properties,
        state: { type: 'string', enum: ACCOUNT_STATES, description: 'Only accounts in this state.' },
        label: {
          type: 'string',
          minLength: 1,
          maxLength: 128,
          description: 'Only accounts with this label, in any case of letters.',
        },
      },
    },
    response: { 200: listOf(accountSchema) },
  };
  app.get<{ Querystring: AccountsQuery }>('/accounts', { schema }, async ({ query }) => {
    const accounts = await deps.consumers.list(query);
    return { data: await Promise.all(accounts.map((one) => viewAccount(one, deps))) };
  });
}

function showAccount(app: FastifyInstance, deps: AdminDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Show an account',
    description:
      'Balance, all-time figures, the sums of its movements by kind, and what the account earns as a provider.',
    params: accountParams,
    response: { 200: oneAccountSchema },
  };
  app.get<{ Params: AccountParams }>('/accounts/:id', { schema }, async ({ params }) => {
    const account = await findAccount(params.id, deps);
    const [data, totals, provider] = await Promise.all([
      viewAccount(account, deps),
      deps.totals(account.account),
      viewSeller(account.account, deps),
    ]);
    const { credits, usage, movements } = totals;
    return {
      data: {
        ...data,
        total_credits_micro_usdc: Number(credits),
        total_usage_micro_usdc: Number(usage),
        movements_micro_usdc: {
          credited: Number(movements.credited),
          debited: Number(movements.debited),
          refunded: Number(movements.refunded),
          deposited: Number(movements.deposited),
          withdrawn: Number(movements.withdrawn),
          paid_out: Number(movements.paidOut),
          written_off: Number(movements.writtenOff),
          other: Number(movements.other),
        },
        provider,
      },
    };
  });
}

interface AdminCallDeps extends Omit<AdminAccountsDeps, 'ledger'>, Pick<GenerationDeps, 'refunds' | 'prices'> {
  readonly ledger: AdminAccountsDeps['ledger'] & Pick<Ledger, 'find' | 'children'>;
  readonly findLocks: (query: LocksQuery) => Promise<FoundLocks>;
  readonly findArchived: FindArchived;
}

function addAdminCallRoute(app: FastifyInstance, deps: AdminCallDeps): void {
  const schema = {
    ...ADMINISTRATION,
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
      const lock = await deps.ledger.find(id);
      if (lock === null) refuseArchived(await deps.findArchived(id, null));
      const record = lock ?? (await findOfRequest(id, account, deps));
      return { data: await viewWhole(record, deps, null) };
    },
  );
}

/** The newest call of the account's request. Rejects with GatewayError. */
async function findOfRequest(id: string, requestId: string | undefined, deps: AdminCallDeps): Promise<LockRecord> {
  if (requestId === undefined)
    throw new GatewayError(
      'not_found',
      'There is no call with this id. If it is the x-request-id of a call, name the account that made it, too',
      { param: 'id' },
    );
  const { account } = await findAccount(requestId, deps);
  const view = (record: LockRecord) => viewCall(record, deps.networks);
  const { data, next_cursor: rest } = await findGenerations(deps, view, account, { request: id, limit: 1 });
  const record = data.length === 0 ? null : await deps.ledger.find(data[0]!.id);
  if (record !== null) return record;
  const where = rest === null ? 'No call of this account' : 'None of the last 10,000 calls of this account';
  throw new GatewayError('not_found', `${where} has this id, or a request with this id`, { param: 'id' });
}
