import type { FastifyPluginAsync } from 'fastify';
import type { Pipeline } from '#gateway';
import { requireAdmission } from '#auth';
import { addChainsRoutes } from './chains-routes.ts';
import { addDepositsRoutes } from './deposits-routes.ts';
import { hideWithoutFunds } from './funds.ts';
import { topupRoutes, type TopupDeps } from './topup-routes.ts';
import { addTopupTransaction } from './topup-transaction-route.ts';
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
