import type { FastifyInstance, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { type KeyStore, refuseRestricted, type AdmissionOf } from '#auth';
import type { Deposit } from '#chains';
import { requireFunds, type Funds } from '#payments/on-chains';
import { fundPageSchema, noBody, dataOf, pageOf, readPage, type FundPage } from '../route-schemas.ts';
import { depositSchema, viewDeposit } from './fund-views.ts';
import { formsOf, ownWallet } from './wallets-routes.ts';

interface DepositsDeps {
  readonly funds: Funds | null;
  readonly keys: Pick<KeyStore, 'find'>;
}

const SEE = 'see deposits';

/** Adds `/deposits`, the deposits to the caller's account. `app` must already admit callers. */
export function addDepositsRoutes(app: FastifyInstance, { funds, keys }: DepositsDeps, admissionOf: AdmissionOf): void {
  const accountOf = async (request: FastifyRequest, what: string): Promise<string> => {
    const { account, key } = admissionOf(request).caller;
    await refuseRestricted(keys, key, what);
    return account;
  };
  const find = async (account: string, id: string): Promise<Deposit | null> => {
    const deposit = await requireFunds(funds).chains.depositRows.find(id);
    return deposit?.account === account ? deposit : null;
  };

  app.get<{ Querystring: FundPage }>(
    '/deposits',
    {
      config: { actsAs: 'viewer' },
      schema: {
        summary: 'List your deposits',
        description: 'Deposits to your account over chains, the newest first.',
        tags: ['Money'],
        querystring: fundPageSchema,
        response: { 200: pageOf(depositSchema) },
      },
    },
    async (request) => {
      const account = await accountOf(request, SEE);
      const { depositRows } = requireFunds(funds).chains;
      const page = await readPage(
        request.query,
        (id) => find(account, id),
        (before, limit) => depositRows.list(account, before, limit),
      );
      return { data: page.entries.map(viewDeposit), next: page.next };
    },
  );

  app.get<{ Params: { readonly id: string } }>(
    '/deposits/:id',
    {
      config: { actsAs: 'viewer' },
      schema: {
        summary: 'Show a deposit',
        tags: ['Money'],
        params: {
          type: 'object',
          required: ['id'],
          properties: { id: { type: 'string', description: 'Its id, percent-encoded.' } },
        },
        response: { 200: dataOf(depositSchema) },
      },
    },
    async (request) => {
      const deposit = await find(await accountOf(request, SEE), request.params.id);
      // The same answer for a deposit that doesn't exist and for a deposit of another account.
      if (deposit === null) throw new GatewayError('not_found', 'Deposit not found', { param: 'id' });
      return { data: viewDeposit(deposit) };
    },
  );

  app.post(
    '/deposits/claim',
    {
      schema: {
        summary: 'Claim your deposits',
        description:
          'Credits final deposits in suspense that were sent by the wallet of your account or by a wallet that is bound to it: plain transfers from a wallet that this gateway had not seen before.',
        tags: ['Money'],
        body: noBody,
        response: { 200: dataOf({ type: 'array', items: depositSchema }) },
      },
    },
    async (request) => {
      const account = await accountOf(request, 'claim deposits');
      const { chains } = requireFunds(funds);
      const bound = (await chains.wallets.list(account)).map(({ wallet }) => ownWallet(wallet));
      const claimed: Deposit[] = [];
      for (const wallet of [ownWallet(account), ...bound]) {
        if (wallet === null) continue;
        // A contract wallet exists on one chain only. On another chain the same address may belong to somebody else.
        for (const address of formsOf(wallet))
          claimed.push(...(await chains.deposits.attribute(address, account, wallet.network)));
      }
      return { data: claimed.map(viewDeposit) };
    },
  );
}
