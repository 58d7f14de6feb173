import type { FastifyInstance, FastifyRequest } from 'fastify';
import { GatewayError } from '#wire';
import { formatUsd } from '#billing';
import { ChainUnavailable } from '#chains';
import type { Admission } from '#gateway';
import { amountOf, amountProperties, eitherAmount, type AmountBody } from '../account/amount.ts';
import { dataOf, objectOf } from '../answer-schemas.ts';
import { requireFunds, withFunds, termsOf, type Funds } from './funds.ts';
import { addressField, networkField } from './network-fields.ts';
import { topupCaller } from './topup-caller.ts';

interface DraftBody extends AmountBody {
  readonly network: string;
  readonly payer: string;
}

/**
 * `POST /topup/transaction`: builds the transaction of a payment on Solana for wallets that only sign. EVM doesn't need
 * this, because wallets sign the terms themselves.
 */
export function addTopupTransaction(
  app: FastifyInstance,
  funds: Funds | null,
  admissionOf: (request: FastifyRequest) => Admission,
): void {
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
