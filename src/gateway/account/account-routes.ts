import type { FastifyPluginAsync } from 'fastify';
import { escrowOf, formatUsd, toUsdNumber, type AccountTotals, type Ledger, type LockRecord } from '#billing';
import type { KeyStore } from '../auth/key-store.ts';
import type { Nonces } from '../auth/siwx/nonces.ts';
import { GatewayError } from '../errors.ts';
import type { Pipeline } from '../pipeline.ts';
import { toCaip10 } from './account-id.ts';
import { requireAdmission } from './admission.ts';
import { viewTree } from './generation-tree.ts';
import { generationSchema } from './generation-view.ts';
import type { FindKeyUsage } from './key-usage.ts';
import { addKeysRoutes } from './keys-routes.ts';

export interface AccountDeps {
  readonly admit: Pipeline['admit'];
  readonly keys: KeyStore;
  /** Whether anything is offered under a name. */
  readonly offers: (service: string) => boolean;
  readonly nonces: Pick<Nonces, 'use'>;
  readonly ledger: Pick<Ledger, 'balance' | 'budget' | 'find' | 'children'>;
  readonly usage: FindKeyUsage;
  readonly totals: (account: string) => Promise<AccountTotals>;
  /** The signed receipt of a settled call; null when it has none. */
  readonly receipt: (record: LockRecord) => string | null;
  readonly now: () => number;
}

/** What a caller sees and does of its own account. Register it under `/api/v1`. */
export function accountRoutes(deps: AccountDeps): FastifyPluginAsync {
  return async (app) => {
    const { ledger, totals, receipt } = deps;
    const admissionOf = requireAdmission(app, deps.admit);
    addKeysRoutes(app, deps, admissionOf);

    app.get(
      '/session/balance',
      {
        schema: {
          summary: 'Show your balance',
          description: 'What is available in your escrow; 0 for an account that was never funded. What running calls have locked is not in it.',
          tags: ['Account'],
          response: {
            200: {
              type: 'object',
              required: ['caip_account_id', 'balance_micro_usdc', 'balance_usd'],
              properties: {
                caip_account_id: { type: 'string', description: 'CAIP-10.' },
                balance_micro_usdc: { type: 'integer' },
                balance_usd: { type: 'string', description: 'Decimal.' },
              },
            },
          },
        },
      },
      async (request) => {
        const { account } = admissionOf(request).caller;
        const available = (await ledger.balance(escrowOf(account)))?.available ?? 0n;
        return { caip_account_id: toCaip10(account), balance_micro_usdc: Number(available), balance_usd: formatUsd(available) };
      },
    );

    app.get(
      '/credits',
      {
        schema: {
          summary: 'Show your credits',
          description: 'All-time figures of your account in USD. Their difference is what you have left, what running calls have locked included.',
          tags: ['Account'],
          response: {
            200: {
              type: 'object',
              required: ['data'],
              properties: {
                data: {
                  type: 'object',
                  required: ['total_credits', 'total_usage'],
                  properties: {
                    total_credits: { type: 'number', description: 'Paid in, less what was withdrawn.' },
                    total_usage: { type: 'number', description: 'Charged for calls.' },
                  },
                },
              },
            },
          },
        },
      },
      async (request) => {
        const { credits, usage } = await totals(admissionOf(request).caller.account);
        return { data: { total_credits: toUsdNumber(credits), total_usage: toUsdNumber(usage) } };
      },
    );

    app.get<{ Querystring: { readonly id: string } }>(
      '/generation',
      {
        schema: {
          summary: 'Show one call',
          description:
            'What a call of your account did and cost, with every movement of its money and all calls that were made under it. The id is in the reply of the call.',
          tags: ['Account'],
          querystring: {
            type: 'object',
            required: ['id'],
            properties: { id: { type: 'string', minLength: 1, maxLength: 128, description: 'Id of the call.' } },
          },
          response: { 200: { type: 'object', required: ['data'], properties: { data: generationSchema } } },
        },
      },
      async (request) => {
        const record = await ledger.find(request.query.id);
        // One answer for what does not exist and what is somebody else's.
        if (record?.account !== admissionOf(request).caller.account) throw new GatewayError('not_found', 'Generation not found', { param: 'id' });
        return { data: await viewTree(record, ledger, receipt) };
      },
    );
  };
}
