import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#errors';
import type { Ledger, Refund, Refunds } from '#billing';
import { formatUsd } from '#billing/amounts';
import { ADMINISTRATION, dataOf, objectOf, titled } from '../route-schemas.ts';
import { amountOf, amountProperties, type AmountBody } from './body-fields.ts';
import { type FindArchived, refuseArchived } from './archived-calls.ts';
import { refundProperties, viewRefund } from './call-tree.ts';

export interface RefundDeps {
  readonly ledger: Pick<Ledger, 'find'>;
  readonly refunds: Pick<Refunds, 'refund' | 'find'>;
  readonly findArchived: FindArchived;
  /** Whether a provider (public key) ever connected. One that did not is the operator's own. */
  readonly isSeenProvider: (provider: string) => Promise<boolean>;
}

interface RefundBody extends AmountBody {
  readonly reason: string;
}

const refundSchema = titled(
  'BookedRefund',
  objectOf({
    call: { type: 'string', description: 'Id of the call.' },
    ...refundProperties,
    from_provider_micro_usdc: {
      type: 'integer',
      description: 'The part that was taken from the earnings of the provider; 0 if they did not suffice.',
    },
    is_own_provider: {
      type: 'boolean',
      description: 'The provider is your own, of the file of the gateway, so you bear all of it.',
    },
    duplicate: { type: 'boolean', description: 'The call had been refunded before, so its consumer got nothing now.' },
  }),
);

export function addRefundRoute(app: FastifyInstance, deps: RefundDeps): void {
  const { ledger, refunds, findArchived, isSeenProvider } = deps;
  const view = async (refund: Refund, duplicate: boolean, provider = refund.provider) => ({
    call: refund.call,
    ...viewRefund(refund),
    from_provider_micro_usdc: Number(refund.fromProvider),
    is_own_provider: provider !== null && !(await isSeenProvider(provider)),
    duplicate,
  });
  const schema = {
    ...ADMINISTRATION,
    summary: 'Refund a call',
    operationId: 'refundCall',
    description:
      'Gives what a call cost back to the account that paid it, in whole or in part. A call is refunded once: a repetition changes nothing, and a repetition with another amount is refused. The provider of the call bears its share, without the fee, if its earnings suffice; otherwise you bear all of it, and a repetition tries to take the share again. Calls under the call are refunded by themselves. Budgets and figures go on counting the call.',
    params: objectOf({ id: { type: 'string', maxLength: 128, description: 'Id of the call.' } }),
    body: {
      title: 'RefundCall',
      type: 'object',
      additionalProperties: false,
      examples: [{ reason: 'the answer was cut' }],
      required: ['reason'],
      properties: {
        amount_usd: {
          ...amountProperties.amount_usd,
          description: 'Decimal USD, at most 6 places. Default: all of it.',
        },
        amount_micro_usdc: amountProperties.amount_micro_usdc,
        reason: {
          type: 'string',
          minLength: 1,
          maxLength: 500,
          pattern: '\\S',
          description: 'Why. The consumer and the provider read it.',
        },
      },
    },
    response: { 200: dataOf(refundSchema) },
  };
  app.post<{ Params: { readonly id: string }; Body: RefundBody }>(
    '/calls/:id/refund',
    { schema, config: { adminRole: 'credit' } },
    async ({ params: { id }, body }) => {
      const hasAmount = body.amount_usd !== undefined || body.amount_micro_usdc !== undefined;
      const record = await ledger.find(id);
      if (record === null) {
        // Its call may be in an archive since. Whoever repeats the refund must not be told to credit the account.
        const refund = await refunds.find(id);
        if (refund !== null) {
          if (hasAmount && amountOf(body) !== refund.amount) refuseSecond(refund);
          return { data: await view(refund, true) };
        }
        refuseArchived(await findArchived(id, null), REFUND_OF_ARCHIVED);
        throw new GatewayError('not_found', 'There is no call with this id', { param: 'id' });
      }
      if (record.state === 'held')
        throw new GatewayError('unprocessable', 'The call still runs, so nothing was charged for it yet', {
          param: 'id',
        });
      if (record.charged === 0n)
        throw new GatewayError('unprocessable', 'Nothing was charged for this call', { param: 'id' });
      const amount = hasAmount ? amountOf(body) : record.charged;
      if (amount > record.charged)
        throw new GatewayError(
          'unprocessable',
          `${formatUsd(record.charged)} USD were charged for this call, so at most that can be refunded`,
          { param: body.amount_usd === undefined ? 'amount_micro_usdc' : 'amount_usd' },
        );
      const result = await refunds.refund(record, amount, body.reason.trim());
      if (!result.ok) refuseSecond(result.refund);
      return { data: await view(result.refund, result.duplicate, record.provider) };
    },
  );
}

function refuseSecond({ amount }: Refund): never {
  throw new GatewayError(
    'idempotency_conflict',
    `This call was already refunded, with ${formatUsd(amount)} USD. A call is refunded once`,
    { param: 'id' },
  );
}

const REFUND_OF_ARCHIVED =
  '. An archived call cannot be refunded: credit its account instead, with the id of the call as the reference (POST /admin/v1/accounts/{id}/credit, or tollgate account credit)';
