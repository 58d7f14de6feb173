import { hash } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#wire';
import { escrowOf, formatUsd, type Ledger, type MicroUsd } from '#billing';
import {
  type Caller,
  type Pipeline,
  withTerms,
  paidCaller,
  paymentHeader,
  readPayment,
  PaymentNeeded,
  refusesPayment,
  type PaymentReceipt,
  type Payments,
  type PaymentAttempt,
  shownAddress,
} from '#gateway';
import { callerCaip10 } from '#auth/accounts';
import { requireAdmission } from '#auth';
import { amountOf, amountProperties, eitherAmount, type AmountBody } from '../account/amount.ts';
import { requireFunds, type Funds, withFunds } from './funds.ts';
import { topupCaller } from './topup-caller.ts';

export interface TopupDeps {
  readonly admit: Pipeline['admit'];
  readonly funds: Funds | null;
  readonly payments: Payments;
  readonly ledger: Pick<Ledger, 'balance'>;
}

/**
 * `POST /topup`: pays in any amount, in the same way as a 402 is paid for a call. A caller with no credential except a
 * wallet with USDC can use it too. Register it under `/api/v1`.
 */
export function topupRoutes({ admit, funds, payments, ledger }: TopupDeps): FastifyPluginAsync {
  const take = async (
    caller: Caller,
    paymentAttempt: PaymentAttempt | null,
    amount: MicroUsd,
  ): Promise<PaymentReceipt> => {
    if (paymentAttempt?.fault)
      throw new PaymentNeeded(paymentAttempt.fault.code, paymentAttempt.fault.message, amount, {
        cause: paymentAttempt.fault,
      });
    if (paymentAttempt === null || caller.anonymous)
      throw new PaymentNeeded(
        'insufficient_balance',
        `Pay ${formatUsd(amount)} USDC: send this request again with PAYMENT-SIGNATURE`,
        amount,
      );
    try {
      return await payments.take(caller, paymentAttempt, amount);
    } catch (error) {
      if (!refusesPayment(error)) throw error;
      throw new PaymentNeeded(error.code, error.message, amount, { param: error.param, cause: error });
    }
  };

  return async (app) => {
    const admissionOf = requireAdmission(app, admit, true);
    app.post<{ Body: AmountBody }>(
      '/topup',
      {
        config: { actsAs: 'admin' },
        preValidation: withFunds(funds),
        schema: {
          summary: 'Pay in',
          description:
            'Without a payment: 402 with the terms of x402 (version 2) in `PAYMENT-REQUIRED`. With one that was made for them, in `PAYMENT-SIGNATURE`: it is credited to your account or to the one that you act for, or, without a credential, to that of the paying wallet. ' +
            '202 with `Retry-After`: it is not known yet whether it was settled; repeat the request with the same payment. A payment is credited once, however often it comes.',
          tags: ['Money'],
          // A payment is a sufficient credential.
          ...(payments.open ? { security: [{}, { bearer: [] }, { apiKey: [] }, { wallet: [] }] } : {}),
          body: {
            type: 'object',
            additionalProperties: false,
            ...eitherAmount,
            properties: amountProperties,
            examples: [{ amount_usd: '1.50' }],
          },
          response: {
            200: {
              type: 'object',
              required: ['data'],
              properties: {
                data: {
                  type: 'object',
                  required: [
                    'account',
                    'deposit',
                    'network',
                    'transaction',
                    'payer',
                    'credited_micro_usdc',
                    'credited_usd',
                  ],
                  properties: {
                    account: { type: 'string', description: 'CAIP-10 of the account that was credited' },
                    deposit: { type: ['string', 'null'], description: 'Id of the deposit' },
                    network: { type: 'string', description: 'CAIP-2' },
                    transaction: { type: 'string', description: 'Its id on the chain' },
                    payer: { type: 'string', description: 'Address of the paying wallet' },
                    credited_micro_usdc: { type: 'integer' },
                    credited_usd: { type: 'string' },
                    balance_micro_usdc: {
                      type: ['integer', 'null'],
                      description: 'Available now; null where only the payment says who you are',
                    },
                    balance_usd: { type: ['string', 'null'] },
                  },
                },
              },
            },
          },
        },
      },
      async (request, reply) => {
        const { terms } = requireFunds(funds);
        const admitted = topupCaller(admissionOf(request).caller);
        const amount = amountOf(request.body);
        const most = terms.reduce((highest, { topupMax }) => (topupMax > highest ? topupMax : highest), 0n);
        if (amount > most) {
          const param = request.body.amount_usd === undefined ? 'amount_micro_usdc' : 'amount_usd';
          throw new GatewayError('invalid_request', `At most ${formatUsd(most)} USDC are accepted at once`, { param });
        }
        const paymentAttempt = readPayment(request.headers, () => hash('sha256', `topup ${amount}`));
        const caller = await paidCaller(payments, admitted, paymentAttempt);
        let receipt: PaymentReceipt;
        try {
          receipt = await take(caller, paymentAttempt, amount);
        } catch (error) {
          const resource = () => ({
            url: shownAddress(request),
            description: `Balance of ${formatUsd(amount)} USDC`,
            mimeType: 'application/json',
          });
          throw await withTerms(payments, error, { caller, resource });
        }
        // Anybody who reads the chain can repeat a payment that was taken. The answer must not show them the payer's
        // balance.
        const available = caller.paying ? null : ((await ledger.balance(escrowOf(caller.account)))?.available ?? 0n);
        void reply.header('payment-response', paymentHeader(receipt));
        return {
          data: {
            account: callerCaip10(caller, [receipt.network]),
            deposit: paymentAttempt?.id ?? null,
            network: receipt.network,
            transaction: receipt.transaction,
            payer: receipt.payer,
            credited_micro_usdc: Number(receipt.amount),
            credited_usd: formatUsd(BigInt(receipt.amount)),
            balance_micro_usdc: available === null ? null : Number(available),
            balance_usd: available === null ? null : formatUsd(available),
          },
        };
      },
    );
  };
}
