import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#errors';
import { escrowOf, formatUsd, OPERATOR_TREASURY } from '#billing';
import type { AccountState } from '#accounts';
import type { AdminLog } from '#auth/keys';
import { ADMINISTRATION, dataOf } from '../route-schemas.ts';
import {
  accountParams,
  accountSchema,
  findAccount,
  viewAccount,
  viewSeller,
  type AdminAccountsDeps,
} from './admin-accounts.ts';
import { amountOf, amountProperties, type AmountBody } from './body-fields.ts';
import { labelTaken, readLabel } from './label.ts';
import { transferOnce, type OperatorTransfer, type OperatorTransferDeps } from './operator-transfers.ts';

export interface LabelDeps {
  readonly log: Pick<AdminLog, 'forgetLabels'>;
}
type Deps = AdminAccountsDeps & OperatorTransferDeps & LabelDeps;
interface Params {
  readonly id: string;
}
interface ReasonBody {
  readonly reason: string;
}
interface CloseBody extends ReasonBody, AmountBody {
  readonly remainder?: 'paid_out' | 'written_off';
  readonly reference?: string;
}

const CREDIT = { adminRole: 'credit' } as const;
const answer = dataOf(accountSchema);
const reason = {
  type: 'string',
  minLength: 1,
  maxLength: 500,
  pattern: '\\S',
  description: 'Why. The owner of the account does not see it.',
} as const;
const reasonBody = {
  title: 'Reason',
  type: 'object',
  additionalProperties: false,
  examples: [{ reason: 'stolen card' }],
  required: ['reason'],
  properties: { reason },
} as const;

export function addAdminStatesRoutes(app: FastifyInstance, deps: Deps): void {
  renameAccount(app, deps);
  changeRoute(app, deps, {
    path: 'freeze',
    from: 'open',
    to: 'frozen',
    schema: {
      ...ADMINISTRATION,
      summary: 'Freeze an account',
      description:
        'Within a second, all gateways refuse new calls and withdrawals of the account with 403, whatever its credential is. Calls, tasks and agents that run go on to their end and are charged. Deposits arrive, and the owner can still look at everything. A withdrawal that is not signed yet is given back.',
    },
  });
  changeRoute(app, deps, {
    path: 'unfreeze',
    from: 'frozen',
    to: 'open',
    schema: { ...ADMINISTRATION, summary: 'Unfreeze an account', description: 'The same keys work again.' },
  });
  closeAccount(app, deps);
  changeRoute(app, deps, {
    path: 'reopen',
    from: 'closed',
    to: 'open',
    schema: {
      ...ADMINISTRATION,
      summary: 'Reopen an account',
      description: 'The account can be used again. Its former keys stay deleted.',
    },
  });
}

function renameAccount(app: FastifyInstance, deps: Deps): void {
  const label = { type: 'string', maxLength: 128, pattern: '^$|\\S', description: 'A name for people; empty: none.' };
  const schema = {
    ...ADMINISTRATION,
    summary: 'Rename an account',
    description:
      'Changes the label. The id stays: keys, receipts and the books refer to it. A label that another account has as its label or name, in any case of letters, is refused with 422. So is a label with invisible characters, or with a word of letters of two scripts that look alike. An empty label takes the name away, also out of the log of changes.',
    params: accountParams,
    body: {
      type: 'object',
      additionalProperties: false,
      examples: [{ label: 'Acme Ltd' }],
      required: ['label'],
      properties: { label },
    },
    response: { 200: answer },
  };
  app.patch<{ Params: Params; Body: { readonly label: string } }>(
    '/accounts/:id',
    { schema, config: CREDIT },
    async ({ params, body }) => {
      const { account } = await registered(params.id, deps);
      const newLabel = readLabel(body.label, account);
      const renamed = await deps.consumers.rename(account, newLabel);
      if (renamed === null) throw labelTaken(newLabel);
      if (newLabel === '') await deps.log.forgetLabels(account);
      return { data: await viewAccount(renamed, deps) };
    },
  );
}

interface StateChange {
  readonly path: string;
  readonly from: AccountState;
  readonly to: AccountState;
  readonly schema: object;
}

function changeRoute(app: FastifyInstance, deps: Deps, { path, from, to, schema }: StateChange): void {
  app.post<{ Params: Params; Body: ReasonBody }>(
    `/accounts/:id/${path}`,
    { schema: { ...schema, params: accountParams, body: reasonBody, response: { 200: answer } }, config: CREDIT },
    async ({ params, body }) => {
      const { account, state } = await registered(params.id, deps);
      // A repetition changes nothing and succeeds.
      if (state !== to) await change(deps, account, { from, to, reason: body.reason.trim() });
      return { data: await viewAccount(await findAccount(account, deps), deps) };
    },
  );
}

async function change(
  { consumers }: Deps,
  account: string,
  { from, to, reason }: { readonly from: AccountState; readonly to: AccountState; readonly reason: string },
): Promise<void> {
  if ((await consumers.changeState(account, { from, to, reason })) !== null) return;
  const now = (await consumers.find(account))?.state ?? 'open';
  if (now !== to)
    throw new GatewayError(
      'unprocessable',
      `The account is ${now}, and only an account that is ${from} can become ${to}`,
    );
}

function closeAccount(app: FastifyInstance, deps: Deps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Close an account',
    description:
      'Ends a frozen account: its keys are deleted, and every request of it is refused. Nothing may be locked any more. An account that is a provider must not be connected, and must have been paid its earnings. If the account has money, name what becomes of it: `remainder`, with its exact amount and a `reference`. The history stays, and the name is not given to another account. A deposit that arrives later is credited, and the account is in `GET /accounts?state=closed` with its balance.',
    params: accountParams,
    body: {
      type: 'object',
      additionalProperties: false,
      examples: [{ reason: 'contract ended', remainder: 'paid_out', amount_usd: 3.5, reference: 'wire-91' }],
      required: ['reason'],
      properties: {
        reason,
        remainder: {
          type: 'string',
          enum: ['paid_out', 'written_off'],
          description: '`paid_out`: you pay it to the customer outside of the gateway. `written_off`: you keep it.',
        },
        ...amountProperties,
        reference: { type: 'string', minLength: 1, maxLength: 128, description: 'Your name of this movement.' },
      },
    },
    response: { 200: answer },
  };
  app.post<{ Params: Params; Body: CloseBody }>(
    '/accounts/:id/close',
    { schema, config: CREDIT },
    async ({ params, body }) => {
      const { account, state } = await registered(params.id, deps);
      if (state === 'open')
        throw new GatewayError('unprocessable', 'Freeze the account before you close it, so that no new call begins');
      if (state === 'frozen') await refuseSeller(deps, account);
      const why = body.reason.trim();
      const remainder = await remainderOf(deps, account, body, why);
      // First the state: an account that somebody unfreezes at this moment keeps its money.
      await change(deps, account, { from: 'frozen', to: 'closed', reason: why });
      if (remainder !== null) await take(deps, remainder);
      return { data: await viewAccount(await findAccount(account, deps), deps) };
    },
  );
}

/**
 * Throws GatewayError `unprocessable` for a provider that may still earn, or that has earnings: the owner of a closed
 * account cannot withdraw them, so the operator must see what it owes before the close.
 */
async function refuseSeller(deps: Deps, account: string): Promise<void> {
  const seller = await viewSeller(account, deps);
  if (seller === null) return;
  const { provider, connected, earnings_usd: earnings } = seller;
  if (connected)
    throw new GatewayError(
      'unprocessable',
      `The account is the provider ${provider}, which is connected and sells. Ban it first, so that it earns no more`,
    );
  if (earnings !== '0')
    throw new GatewayError(
      'unprocessable',
      `The account is the provider ${provider}, to which ${earnings} USD of its earnings are owed. Pay them and book the payout first`,
    );
}

/**
 * The movement of all that the account has; null if it has nothing. Throws GatewayError `unprocessable` if money is
 * locked, or if the amount is not what the account has.
 */
async function remainderOf(
  { ledger }: Deps,
  account: string,
  body: CloseBody,
  why: string,
): Promise<OperatorTransfer | null> {
  const from = escrowOf(account);
  const { available = 0n, locked = 0n } = (await ledger.balance(from)) ?? {};
  if (locked > 0n)
    throw new GatewayError('unprocessable', `Running calls have locked ${formatUsd(locked)} USD: wait until they end`);
  if (available === 0n) return null;
  const { remainder, reference } = body;
  const needed = `The account has ${formatUsd(available)} USD: give remainder (paid_out or written_off), this amount and a reference`;
  if (remainder === undefined || reference === undefined)
    throw new GatewayError('unprocessable', needed, { param: remainder === undefined ? 'remainder' : 'reference' });
  const amount = amountOf(body);
  if (amount !== available) throw new GatewayError('unprocessable', needed, { param: 'amount_usd' });
  const memo = remainder === 'paid_out' ? 'The account was closed, and this was paid out' : `Written off: ${why}`;
  return { id: `close:${reference}`, from, to: OPERATOR_TREASURY, amount, memo };
}

/**
 * Takes the remainder. Throws GatewayError `idempotency_conflict` if the reference belongs to an earlier remainder:
 * money that arrived after the account was closed is another movement.
 */
async function take(deps: Deps, remainder: OperatorTransfer): Promise<void> {
  const { duplicate, available } = await transferOnce(deps, remainder, 'account');
  if (duplicate && available > 0n)
    throw new GatewayError(
      'idempotency_conflict',
      `This reference was already used for an earlier remainder. The account has ${formatUsd(available)} USD more: give another reference`,
      { param: 'reference' },
    );
}

/** The account of an id. A wallet that has no row yet gets one, because a state needs it. */
async function registered(id: string, deps: Deps) {
  const account = await findAccount(id, deps);
  return account.createdAt === null ? deps.consumers.ensure(account.account) : account;
}
