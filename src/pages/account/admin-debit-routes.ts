import type { FastifyInstance } from 'fastify';
import { escrowOf, OPERATOR_TREASURY } from '#billing';
import { dataOf, objectOf } from '../answer-schemas.ts';
import { accountParams, accountSchema, findAccount, viewAccount, type AdminAccountsDeps } from './admin-accounts.ts';
import { amountOf, referenceOf, amountProperties, eitherAmount, referenceField, type AmountBody } from './amount.ts';
import { transferOnce, type OperatorTransferDeps } from './operator-transfer.ts';

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

/** Adds the route with which the operator takes money from an account. */
export function addAdminDebitRoute(
  app: FastifyInstance,
  deps: AdminAccountsDeps & OperatorTransferDeps,
  administration: object,
): void {
  const schema = {
    ...administration,
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
      const found = await findAccount(params.id, deps);
      const amount = amountOf(body);
      const reference = referenceOf(body);
      const from = escrowOf(found.account);
      const { duplicate, available } = await transferOnce(
        deps,
        { id: `debit:${reference}`, from, to: OPERATOR_TREASURY, amount, memo: body.reason.trim() },
        'debit',
      );
      return {
        data: {
          account: await viewAccount(found, deps),
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
