import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#errors';
import {
  formatUsd,
  type AccountName,
  type Balance,
  type Ledger,
  type MicroUsd,
  type TransferRecord,
  escrowOf,
  OPERATOR_TREASURY,
} from '#billing';
import { ADMINISTRATION, dataOf, objectOf } from '../route-schemas.ts';
import { accountParams, accountSchema, findAccount, viewAccount, type AdminAccountsDeps } from './admin-accounts.ts';
import {
  amountOf,
  referenceOf,
  amountProperties,
  eitherAmount,
  referenceField,
  type AmountBody,
} from './body-fields.ts';

export interface OperatorTransferDeps {
  readonly ledger: Pick<Ledger, 'balance' | 'transfer'>;
  readonly findTransfer: (id: string) => Promise<TransferRecord | null>;
}

/** A movement of the operator. `id` is unique over all movements, for ever. */
export interface OperatorTransfer {
  readonly id: string;
  readonly from: AccountName;
  readonly to: AccountName;
  readonly amount: MicroUsd;
  readonly memo: string;
}

/** `available`: what the source has after the transfer. `duplicate`: it was made before, so nothing moved now. */
interface OperatorTransferResult {
  readonly duplicate: boolean;
  readonly available: MicroUsd;
}

/**
 * Moves money once for an id, however often it is asked for. `what` names the kind of movement for the error. Throws
 * GatewayError `idempotency_conflict` if the id belongs to another amount or other accounts, and `unprocessable` if the
 * source has too little.
 */
export async function transferOnce(
  { ledger, findTransfer }: OperatorTransferDeps,
  transfer: OperatorTransfer,
  what: string,
): Promise<OperatorTransferResult> {
  const result = await ledger.transfer(transfer);
  const { available } = result;
  if (result.ok) return { duplicate: false, available };
  if (result.reason === 'insufficient') throw tooMuch(available, await ledger.balance(transfer.from));
  const before = await findTransfer(transfer.id);
  if (!before) throw new Error(`${transfer.id} was refused: ${result.reason}`);
  if (before.from !== transfer.from || before.to !== transfer.to || before.amount !== transfer.amount)
    throw new GatewayError(
      'idempotency_conflict',
      `This reference was already used for another ${what}: ${formatUsd(before.amount)} USD from ${before.from} to ${before.to}`,
      { param: 'reference' },
    );
  return { duplicate: true, available };
}

function tooMuch(available: MicroUsd, balance: Balance | null): GatewayError {
  const locked = balance?.locked ?? 0n;
  const more =
    locked === 0n
      ? ''
      : `. Running calls have locked ${formatUsd(locked)} USD more, which cannot be taken until they end`;
  const most =
    available === 0n
      ? 'The account has no money that can be taken'
      : `At most ${formatUsd(available)} USD can be taken from this account`;
  return new GatewayError('unprocessable', `${most}${more}`, { param: 'amount_usd' });
}

interface CreditBody extends AmountBody {
  readonly reference: string;
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

export function addCreditRoute(app: FastifyInstance, deps: AdminAccountsDeps & OperatorTransferDeps): void {
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
  app.post<{ Params: { readonly id: string }; Body: CreditBody }>(
    '/accounts/:id/credit',
    { schema, config: { adminRole: 'credit' } },
    async (request) => {
      const match = await findAccount(request.params.id, deps);
      const amount = amountOf(request.body);
      const reference = referenceOf(request.body);
      // An account that gets money must be in the list of accounts, so it is registered.
      const account = match.createdAt === null ? await deps.consumers.ensure(match.account) : match;
      const to = escrowOf(account.account);
      const transfer = { id: `credit:${reference}`, from: OPERATOR_TREASURY, to, amount };
      const { duplicate } = await transferOnce(deps, { ...transfer, memo: 'operator credit' }, 'credit');
      const data = { account: await viewAccount(account, deps), reference };
      return { data: { ...data, amount_micro_usdc: Number(amount), duplicate } };
    },
  );
}

interface DebitBody extends AmountBody {
  readonly reason: string;
  readonly reference: string;
}

const debitSchema = objectOf({
  account: accountSchema,
  reference: { type: 'string' },
  amount_micro_usdc: { type: 'integer' },
  balance_before_micro_usdc: {
    type: 'integer',
    description: 'The balance at the moment before the debit. For a duplicate: the present balance.',
  },
  balance_after_micro_usdc: { type: 'integer', description: 'The balance at the moment after the debit.' },
  duplicate: { type: 'boolean', description: 'The reference had been debited before, so nothing was taken now.' },
});

export function addDebitRoute(app: FastifyInstance, deps: AdminAccountsDeps & OperatorTransferDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Debit an account',
    description:
      'Takes money from the account, for example because too much was credited. Only what is available can be taken: never what running calls have locked. The owner of the account sees the `reason`. You choose the `reference`, which counts once, as for a credit.',
    params: accountParams,
    body: {
      type: 'object',
      additionalProperties: false,
      examples: [{ amount_usd: 450, reason: '500 were credited instead of 50', reference: 'correction-17' }],
      required: ['reason', 'reference'],
      ...eitherAmount,
      properties: {
        ...amountProperties,
        reason: {
          type: 'string',
          minLength: 1,
          maxLength: 500,
          pattern: '\\S',
          description: 'Why. The owner of the account reads it in the list of movements.',
        },
        reference: referenceField('Your name of the correction.'),
      },
    },
    response: { 200: dataOf(debitSchema) },
  };
  app.post<{ Params: { readonly id: string }; Body: DebitBody }>(
    '/accounts/:id/debit',
    { schema, config: { adminRole: 'credit' } },
    async ({ params, body }) => {
      const account = await findAccount(params.id, deps);
      const amount = amountOf(body);
      const reference = referenceOf(body);
      const from = escrowOf(account.account);
      const { duplicate, available } = await transferOnce(
        deps,
        { id: `debit:${reference}`, from, to: OPERATOR_TREASURY, amount, memo: body.reason.trim() },
        'debit',
      );
      return {
        data: {
          account: await viewAccount(account, deps),
          reference,
          amount_micro_usdc: Number(amount),
          balance_before_micro_usdc: Number(duplicate ? available : available + amount),
          balance_after_micro_usdc: Number(available),
          duplicate,
        },
      };
    },
  );
}
