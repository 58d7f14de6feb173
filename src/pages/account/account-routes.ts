import type { FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#wire';
import {
  escrowOf,
  formatUsd,
  toUsdNumber,
  type AccountTotals,
  type FoundLocks,
  type Ledger,
  type LockRecord,
  type LocksAsked,
} from '#billing';
import type { Pipeline } from '#gateway';
import { isRestricted, type KeyStore, type Nonces, requireAdmission } from '#auth';
import { callerCaip10 } from '#auth/accounts';
import { viewTree } from './generation-tree.ts';
import { callSchema, generationSchema, viewCall } from './generation-view.ts';
import { findGenerations, generationsQuerySchema, type GenerationsQuery } from './generations-page.ts';
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
  readonly findLocks: (asked: LocksAsked) => Promise<FoundLocks>;
  readonly totals: (account: string) => Promise<AccountTotals>;
  /** The signed receipt of a settled call; null when it has none. */
  readonly receipt: (record: LockRecord) => string | null;
  /** CAIP-2 ids of the gateway's own chains. */
  readonly networks: readonly string[];
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
          description:
            'What is available in your escrow; 0 for an account that was never funded. What running calls have locked is not in it.',
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
        const { caller } = admissionOf(request);
        const available = (await ledger.balance(escrowOf(caller.account)))?.available ?? 0n;
        return {
          caip_account_id: callerCaip10(caller, deps.networks),
          balance_micro_usdc: Number(available),
          balance_usd: formatUsd(available),
        };
      },
    );

    app.get(
      '/credits',
      {
        schema: {
          summary: 'Show your credits',
          description:
            'All-time figures of your account in USD. Their difference is what you have left, what running calls have locked included.',
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
            'What a call of your account did and cost, with every movement of its money and all calls that were made under it; to a key with a spending limit, an expiry or a list of services, one that was made with it. The id is in the reply of the call.',
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
        const { account, key } = admissionOf(request).caller;
        const record = await ledger.find(request.query.id);
        const own =
          record?.account === account &&
          (viewCall(record, deps.networks).api_key === key?.hash || !(await isRestricted(deps.keys, key)));
        // One answer for what does not exist and what is somebody else's. Ids of calls follow each other, so that
        // they can be guessed.
        if (!own) throw new GatewayError('not_found', 'Generation not found', { param: 'id' });
        return { data: await viewTree(record, ledger, receipt, deps.networks) };
      },
    );

    app.get<{ Querystring: GenerationsQuery }>(
      '/generations',
      {
        schema: {
          summary: 'List your calls',
          operationId: 'listGenerations',
          description:
            'Calls of your account, the newest first; to a key with a spending limit, an expiry or a list of services, those alone that were made with it. ' +
            'A page can have fewer calls than `limit`, or none, before the list is at its end: go on with `next_cursor` until that is null.',
          tags: ['Account'],
          querystring: generationsQuerySchema,
          response: {
            200: {
              type: 'object',
              required: ['data', 'next_cursor'],
              properties: {
                data: { type: 'array', items: callSchema },
                next_cursor: { type: ['string', 'null'], description: '`cursor` of the next page; null at the end.' },
              },
            },
          },
        },
      },
      async (request) => {
        const { account, key } = admissionOf(request).caller;
        const restricted = await isRestricted(deps.keys, key);
        if (restricted && request.query.key !== undefined && request.query.key !== key!.hash)
          throw new GatewayError(
            'permission_denied',
            'A key with a spending limit, an expiry or a list of services sees its own calls alone',
            {
              param: 'key',
            },
          );
        const query = restricted ? { ...request.query, key: key!.hash } : request.query;
        return findGenerations(deps.findLocks, (record) => viewCall(record, deps.networks), account, query);
      },
    );
  };
}
