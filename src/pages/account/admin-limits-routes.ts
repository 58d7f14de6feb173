import type { FastifyInstance, FastifySchema } from 'fastify';
import { accountParams, findAccount, type AdminAccountsDeps } from './admin-accounts.ts';
import {
  limitsBodySchema,
  oneLimitsSchema,
  changeLimits,
  parseLimits,
  viewLimits,
  type LimitsBody,
  type LimitsDeps,
} from './limits-view.ts';

interface AccountParams {
  readonly id: string;
}

const LIMITS = '/accounts/:id/limits';
/** Limits need the role configure. With the role credit one must not be able to lift an account's limits. */
const CONFIGURE = { adminRole: 'configure' } as const;

/**
 * Adds the routes for the operator's limits of every account to `app`, which only the operator can access. They apply
 * in addition to the owner's limits. `common` is part of every route's schema.
 */
export function addAdminLimitsRoutes(
  app: FastifyInstance,
  deps: AdminAccountsDeps & LimitsDeps,
  common: FastifySchema,
): void {
  const shown = {
    ...common,
    summary: "Show an account's limits",
    description:
      'The limits that the operator has set for the account, with what was spent. The owner may have set others.',
    params: accountParams,
    response: { 200: oneLimitsSchema },
  };
  app.get<{ Params: AccountParams }>(LIMITS, { schema: shown }, async ({ params }) => {
    const { account } = await findAccount(params.id, deps);
    return { data: await viewLimits(account, 'operator', await deps.limits.get(account, 'operator'), deps) };
  });
  const changed = {
    ...common,
    summary: "Change an account's limits",
    description:
      'Changes only the given fields: budgets and rates of all keys of the account together. `budgets` replaces the list. It takes effect at once on this gateway, and within a second on every other gateway.',
    params: accountParams,
    body: limitsBodySchema,
    response: { 200: oneLimitsSchema },
  };
  app.patch<{ Params: AccountParams; Body: LimitsBody }>(
    LIMITS,
    { schema: changed, config: CONFIGURE },
    async ({ params, body }) => {
      const { account } = await findAccount(params.id, deps);
      return changeLimits(account, 'operator', parseLimits(body), deps);
    },
  );
}
