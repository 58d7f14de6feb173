import { hash } from 'node:crypto';
import type { FastifyPluginAsync, FastifyInstance } from 'fastify';
import { GatewayError } from '#errors';
import { escrowOf, type Ledger } from '#billing';
import { formatUsd, type MicroUsd } from '#billing/amounts';
import type { Caller } from '#accounts';
import type { Pipeline } from '#call';
import {
  withTerms,
  paidCaller,
  paymentHeader,
  readPayment,
  PaymentNeeded,
  refusesPayment,
  type PaymentReceipt,
  type Payments,
  type PaymentAttempt,
} from '#payments';
import { shownAddress } from '#http';
import { callerCaip10 } from '#accounts/names';
import { requireAdmission, type AdmissionOf } from '#auth';
import { ChainUnavailable } from '#chains';
import { requireFunds, type Funds, withFunds, termsOf } from '#payments/on-chains';
import { amountOf, amountProperties, eitherAmount, type AmountBody } from '../account/body-fields.ts';
import { dataOf, objectOf } from '../route-schemas.ts';
import { addressField, networkField } from './fund-views.ts';

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

interface DraftBody extends AmountBody {
  readonly network: string;
  readonly payer: string;
}

/**
 * `POST /topup/transaction`: builds the transaction of a payment on Solana for wallets that only sign. EVM doesn't need
 * this, because wallets sign the terms themselves.
 */
export function addTopupTransaction(app: FastifyInstance, funds: Funds | null, admissionOf: AdmissionOf): void {
  app.post<{ Body: DraftBody }>(
    '/topup/transaction',
    {
      config: { actsAs: 'admin' },
      preValidation: withFunds(funds),
      schema: {
        summary: 'Prepare a payment on Solana',
        description:
          'A transaction that pays an amount into your account, for the paying wallet to sign. Then send it to `/topup` in `PAYMENT-SIGNATURE`: `{"x402Version": 2, "accepted": …, "payload": {"transaction": …}}`. It is good for about a minute, and charges nothing by itself.',
        operationId: 'prepareTopup',
        tags: ['Money'],
        body: {
          type: 'object',
          additionalProperties: false,
          required: ['network', 'payer'],
          examples: [
            {
              network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
              payer: 'GThUX1Atko4tqhN2NaiTazWSeFWMuiUvfFnyJyUghFMJ',
              amount_usd: '5',
            },
          ],
          ...eitherAmount,
          properties: {
            ...amountProperties,
            network: networkField('CAIP-2 of a network of Solana'),
            payer: addressField('Address of the wallet that pays, in base58'),
          },
        },
        response: {
          200: dataOf(
            objectOf({
              accepted: { type: 'object', additionalProperties: true, description: 'The terms that it fulfils' },
              transaction: { type: 'string', description: 'Base64, without signatures' },
            }),
          ),
        },
      },
    },
    async (request) => {
      const caller = topupCaller(admissionOf(request).caller);
      const { chains, ...rest } = requireFunds(funds);
      const { network, payer } = request.body;
      const { minTopup, topupMax } = termsOf({ chains, ...rest }, network);
      const amount = amountOf(request.body);
      if (amount < minTopup || amount > topupMax)
        throw new GatewayError(
          'invalid_request',
          `${formatUsd(minTopup)} to ${formatUsd(topupMax)} USDC are accepted at once on ${network}`,
          { param: request.body.amount_usd === undefined ? 'amount_micro_usdc' : 'amount_usd' },
        );
      const chain = chains.chain(network);
      if (chain !== null && chain.draft === undefined)
        throw new GatewayError(
          'invalid_request',
          `A wallet on ${network} signs the terms of /topup itself, so it needs no prepared transaction`,
          {
            param: 'network',
          },
        );
      // Otherwise the payment would be refused after the wallet has signed it.
      if (caller.wallet !== null && caller.account !== `solana:${payer}`)
        throw new GatewayError(
          'invalid_request',
          'Another wallet is signed in. Pay with the wallet that is signed in',
          { param: 'payer' },
        );
      try {
        if (chain === null) throw new ChainUnavailable(`${network} does not answer`);
        const accepted = await chain.requirements(amount, caller.wallet === null ? caller.account : null);
        const transaction = await chain.draft!(accepted, payer);
        if (transaction === null)
          throw new GatewayError('invalid_request', 'payer must be the address of a wallet on Solana, in base58', {
            param: 'payer',
          });
        return { data: { accepted, transaction } };
      } catch (error) {
        if (!(error instanceof ChainUnavailable)) throw error;
        throw new GatewayError('service_unavailable', 'The network cannot be reached at the moment. Retry later', {
          retryAfterS: 5,
          cause: error,
        });
      }
    },
  );
}

/**
 * Returns the caller whose account a payment is credited to. If a member acts for an organisation, the member's own
 * wallet gets no special treatment: on chains whose payments name an account, the payment must name the organisation.
 * Throws GatewayError `permission_denied` for a run token.
 */
function topupCaller(caller: Caller): Caller {
  if (caller.run)
    throw new GatewayError(
      'permission_denied',
      'A run token works only for calls. Pay in with the credential of the account',
    );
  return caller.member === undefined ? caller : { ...caller, wallet: null };
}
