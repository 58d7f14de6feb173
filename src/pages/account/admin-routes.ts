import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { escrowOf, type AccountTotals, type Ledger, OPERATOR_TREASURY } from '#billing';
import { DOCUMENTED } from '#gateway';
import type { AdminGate } from '#auth';
import { ACCOUNT_ID_PATTERN } from '#auth/accounts';
import { ACCOUNT_STATES, type AccountState } from '#auth/keys';
import { dataOf, listOf, objectOf } from '../answer-schemas.ts';
import type { KeysDeps } from './account-keys.ts';
import {
  accountParams,
  accountSchema,
  findAccount,
  newAccountId,
  viewAccount,
  viewSeller,
  type AdminAccountsDeps,
  type NewAccountBody,
} from './admin-accounts.ts';
import { addAdminCallRoute, type AdminCallDeps } from './admin-call-route.ts';
import { addAdminDebitRoute } from './admin-debit-routes.ts';
import { addAdminKeyRoutes } from './admin-key-routes.ts';
import { addAdminMembersRoutes } from './admin-members-routes.ts';
import { addAdminLimitsRoutes } from './admin-limits-routes.ts';
import { addAdminStatesRoutes } from './admin-states-routes.ts';
import { labelTaken, readLabel } from './label.ts';
import type { MembersDeps } from './members-view.ts';
import { transferOnce, type OperatorTransferDeps } from './operator-transfer.ts';
import { amountOf, referenceOf, amountProperties, eitherAmount, referenceField, type AmountBody } from './amount.ts';
import { pageSchema, type Page } from './page.ts';

interface AdminDeps extends AdminAccountsDeps, AdminCallDeps, KeysDeps, MembersDeps, OperatorTransferDeps {
  readonly keys: KeysDeps['keys'];
  readonly members: MembersDeps['members'];
  readonly gate: AdminGate;
  readonly ledger: Pick<Ledger, 'balance' | 'budget' | 'children' | 'find' | 'spentOf' | 'transfer'>;
  readonly totals: (account: string) => Promise<AccountTotals>;
}

interface AccountParams {
  readonly id: string;
}
interface AccountsQuery extends Page {
  readonly state?: AccountState;
  readonly label?: string;
}
interface CreditBody extends AmountBody {
  readonly reference: string;
}

const ADMINISTRATION = { tags: ['Administration'], security: [{ bearer: [] }] };
const CREDIT = { adminRole: 'credit' } as const;
const oneAccountSchema = dataOf(accountSchema);

/** The operator's routes for accounts, credit and keys. Register it under `/admin/v1`. */
export function adminRoutes(deps: AdminDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', deps.gate);
    createAccount(app, deps);
    listAccounts(app, deps);
    showAccount(app, deps);
    creditAccount(app, deps);
    addAdminCallRoute(app, deps, ADMINISTRATION);
    addAdminDebitRoute(app, deps, ADMINISTRATION);
    addAdminStatesRoutes(app, deps, ADMINISTRATION);
    addAdminKeyRoutes(app, deps, ADMINISTRATION);
    addAdminLimitsRoutes(app, deps, ADMINISTRATION);
    addAdminMembersRoutes(app, deps, ADMINISTRATION);
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
    const made = await deps.consumers.create(account, label);
    if (made === null) throw labelTaken(label);
    const { created, consumer } = made;
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
    const found = await findAccount(params.id, deps);
    const [data, totals, provider] = await Promise.all([
      viewAccount(found, deps),
      deps.totals(found.account),
      viewSeller(found.account, deps),
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

const creditSchema = objectOf(
  {
    account: accountSchema,
    reference: { type: 'string' },
    amount_micro_usdc: { type: 'integer' },
    duplicate: { type: 'boolean', description: 'The reference had been credited before, so nothing was added now.' },
  },
  ['amount_micro_usdc'],
);

function creditAccount(app: FastifyInstance, deps: AdminDeps): void {
  const reference = referenceField('Your name of the payment, for example an invoice number.');
  const schema = {
    ...ADMINISTRATION,
    summary: 'Credit an account',
    description:
      'Adds money to the account, which for a wallet need not be made before. You choose the `reference`. It counts once: a repetition changes nothing, and a repetition with another amount or account is refused.',
    params: accountParams,
    body: {
      type: 'object',
      additionalProperties: false,
      examples: [{ amount_usd: 25, reference: 'invoice-17' }],
      required: ['reference'],
      ...eitherAmount,
      properties: { ...amountProperties, reference },
    },
    response: { 200: dataOf(creditSchema) },
  };
  app.post<{ Params: AccountParams; Body: CreditBody }>(
    '/accounts/:id/credit',
    { schema, config: CREDIT },
    async (request) => {
      const found = await findAccount(request.params.id, deps);
      const amount = amountOf(request.body);
      const reference = referenceOf(request.body);
      // An account that gets money must be in the list of accounts, so it is registered.
      const account = found.createdAt === null ? await deps.consumers.ensure(found.account) : found;
      const to = escrowOf(account.account);
      const transfer = { id: `credit:${reference}`, from: OPERATOR_TREASURY, to, amount };
      const { duplicate } = await transferOnce(deps, { ...transfer, memo: 'operator credit' }, 'credit');
      const data = { account: await viewAccount(account, deps), reference };
      return { data: { ...data, amount_micro_usdc: Number(amount), duplicate } };
    },
  );
}
