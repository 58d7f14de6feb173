import type { FastifyPluginAsync, FastifyInstance } from 'fastify';
import type { Pipeline } from '#call';
import { requireAdmission } from '#auth';
import { formatUsd } from '#billing/amounts';
import { hideWithoutFunds, type Funds } from '#payments/on-chains';
import { addDepositsRoutes } from './deposits-routes.ts';
import { topupRoutes, type TopupDeps, addTopupTransaction } from './topup-routes.ts';
import { addWalletsRoutes, type WalletsDeps } from './wallets-routes.ts';
import { addWithdrawalsRoutes, type WithdrawalsDeps } from './withdrawals-routes.ts';

interface FundsDeps extends TopupDeps, WithdrawalsDeps, WalletsDeps {
  readonly admit: Pipeline['admit'];
}

/**
 * The routes that pay money in and out over chains. Without chains they answer that the gateway takes no money over
 * chains, and the reference leaves them out. Register it under `/api/v1`.
 */
export function fundsRoutes(deps: FundsDeps): FastifyPluginAsync {
  return async (app) => {
    addChainsRoutes(app, deps.funds);
    hideWithoutFunds(app, deps.funds);
    await app.register(topupRoutes(deps));
    await app.register(async (own) => {
      const admissionOf = requireAdmission(own, deps.admit);
      addTopupTransaction(own, deps.funds, admissionOf);
      addDepositsRoutes(own, deps, admissionOf);
      addWithdrawalsRoutes(own, deps, admissionOf);
      addWalletsRoutes(own, deps, admissionOf);
    });
  };
}

const micro = (description: string) => ({ type: 'integer', description: `Micro-USD. ${description}` }) as const;

const properties = {
  network: { type: 'string', description: 'CAIP-2' },
  asset: { type: 'string', description: 'Address of the token' },
  treasury: {
    type: ['string', 'null'],
    description: 'Address that is paid; null until the chain was reached for the first time',
  },
  answers: { type: 'boolean', description: 'Whether the chain answered when it was asked last' },
  confirmations: { type: 'integer', description: 'Blocks after which a payment is credited' },
  min_topup_micro_usdc: micro('The least that one payment is asked to be'),
  min_topup_usd: { type: 'string' },
  topup_max_micro_usdc: micro('The most that one payment may be'),
  withdrawal_min_micro_usdc: micro('The least that is paid out at once'),
  withdrawal_fee_micro_usdc: micro('Fee of each withdrawal: the address gets this much less'),
  withdrawal_fee_usd: { type: 'string' },
  token_account_fee_micro_usdc: micro('Additional fee if the address has no token account yet (Solana)'),
  token_account_fee_usd: { type: 'string' },
  withdrawal_daily_max_micro_usdc: micro('The most that is paid out of one balance in 24 hours'),
} as const;

/** Adds `GET /payments/chains` to `app`: the accepted chains. Public. The list is empty on a gateway without chains. */
function addChainsRoutes(app: FastifyInstance, funds: Funds | null): void {
  app.get(
    '/payments/chains',
    {
      schema: {
        summary: 'List the chains that can be paid over',
        description:
          'The chains for deposits and withdrawals. A plain transfer to a treasury is credited to the account of the sending wallet, to the account that the wallet is bound to, or to the account in the memo.',
        tags: ['Money'],
        security: [],
        response: {
          200: {
            type: 'object',
            required: ['data'],
            properties: {
              data: { type: 'array', items: { type: 'object', required: Object.keys(properties), properties } },
            },
          },
        },
      },
    },
    () => ({
      data: (funds?.terms ?? []).map((terms) => ({
        network: terms.network,
        asset: terms.asset,
        treasury: funds!.chains.chain(terms.network)?.treasury ?? null,
        answers: funds!.answers(terms.network),
        confirmations: terms.confirmations,
        min_topup_micro_usdc: Number(terms.minTopup),
        min_topup_usd: formatUsd(terms.minTopup),
        topup_max_micro_usdc: Number(terms.topupMax),
        withdrawal_min_micro_usdc: Number(terms.withdrawalMin),
        withdrawal_fee_micro_usdc: Number(terms.withdrawalFee),
        withdrawal_fee_usd: formatUsd(terms.withdrawalFee),
        token_account_fee_micro_usdc: Number(terms.tokenAccountFee),
        token_account_fee_usd: formatUsd(terms.tokenAccountFee),
        withdrawal_daily_max_micro_usdc: Number(terms.withdrawalDailyMax),
      })),
    }),
  );
}
