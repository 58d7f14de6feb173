import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { FEES, formatUsd, OPERATOR, SUSPENSE, type Ledger, type MicroUsd } from '#billing';
import { LOSSES, TRANSIT, type OpenMoney } from '#chains';
import { needsNoMaking, parseAccountId } from '#accounts/names';
import type { ConsumerStore } from '#accounts';
import type { AdminGate } from '#auth';
import { hideWithoutFunds, requireFunds, termsOf, type Funds } from '#payments/on-chains';
import { amountOf, amountProperties, eitherAmount, type AmountBody } from '../account/body-fields.ts';
import { fundPageSchema, ADMINISTRATION, dataOf, pageOf, readPage, type FundPage } from '../route-schemas.ts';
import {
  addressField,
  networkField,
  depositSchema,
  iso,
  viewDeposit,
  viewWithdrawal,
  withdrawalSchema,
} from './fund-views.ts';
import { addTreasuryRoutes } from './treasury-routes.ts';
import { withdrawalError, withdrawalIdOf } from './withdrawals-routes.ts';

interface AdminFundsDeps {
  readonly gate: AdminGate;
  readonly funds: Funds | null;
  readonly consumers: Pick<ConsumerStore, 'find'>;
  readonly ledger: Pick<Ledger, 'balance'>;
  /** CAIP-2 ids of the chains on which contract wallets sign in. */
  readonly contractNetworks: readonly string[];
}

const money = { type: 'integer', description: 'Micro-USD' } as const;
const maybeMoney = { type: ['integer', 'null'], description: 'Micro-USD; null before the first comparison' } as const;
const openSchema = {
  title: 'OpenMovements',
  type: 'object',
  required: ['count', 'oldest'],
  properties: { count: { type: 'integer' }, oldest: { type: ['string', 'null'], description: 'RFC 3339' } },
} as const;
const bookProperties = {
  network: { type: 'string' },
  asset: { type: 'string' },
  treasury: { type: ['string', 'null'] },
  previous_treasury: {
    type: ['string', 'null'],
    description: 'The previous treasury that hands over to this one, or null',
  },
  previous_empty: {
    type: 'boolean',
    description: 'The previous treasury was empty at the last comparison, and no payment to or from it was pending',
  },
  answers: { type: 'boolean' },
  held_micro_usdc: maybeMoney,
  booked_micro_usdc: maybeMoney,
  compared_at: { type: ['string', 'null'] },
  halted: { type: ['string', 'null'], description: 'Why payouts are halted; null if they are not' },
  deposits: { ...openSchema, description: 'That are not known yet' },
  unfinal: { ...openSchema, description: 'Credited, and not final' },
  withdrawals: { ...openSchema, description: 'That are not at their end' },
} as const;

/** The operator's routes for money over chains. Register it under `/admin/v1`. */
export function adminFundsRoutes(deps: AdminFundsDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', deps.gate);
    hideWithoutFunds(app, deps.funds);
    addBooks(app, deps);
    addSuspense(app, deps);
    addFeeWithdrawals(app, deps);
    addTreasuryRoutes(app, deps.funds);
  };
}

const availableOf =
  (ledger: AdminFundsDeps['ledger']) =>
  async (account: string): Promise<MicroUsd> =>
    (await ledger.balance(account))?.available ?? 0n;

function addBooks(app: FastifyInstance, { funds, ledger }: AdminFundsDeps): void {
  const availableIn = availableOf(ledger);

  app.get(
    '/payments',
    {
      schema: {
        summary: 'Show the books of the chains',
        description:
          'What each treasury held when it was last compared, what is open, and what is halted. `GET /audit?chain=true` compares now.',
        ...ADMINISTRATION,
        response: {
          200: dataOf({
            type: 'object',
            required: ['chains', 'suspense_micro_usdc', 'losses_micro_usdc', 'transit_micro_usdc', 'fees_micro_usdc'],
            properties: {
              chains: {
                type: 'array',
                items: { type: 'object', required: Object.keys(bookProperties), properties: bookProperties },
              },
              suspense_micro_usdc: {
                ...money,
                description: 'Micro-USD that arrived but are not credited to an account yet',
              },
              losses_micro_usdc: {
                ...money,
                description:
                  'Micro-USD of losses that are not paid back yet: undone by a chain after they were spent, written off, or lost on the way between treasuries',
              },
              transit_micro_usdc: { ...money, description: 'Micro-USD on their way from a treasury to another one' },
              fees_micro_usdc: money,
            },
          }),
        },
      },
    },
    async () => {
      const { chains, terms, answers } = requireFunds(funds);
      const [books, open, suspense, losses, transit, fees] = await Promise.all([
        chains.books(),
        chains.open(),
        availableIn(SUSPENSE),
        availableIn(LOSSES),
        availableIn(TRANSIT),
        availableIn(FEES),
      ]);
      const openOf = (network: string, kind: OpenMoney['kind']) => {
        const openMoney = open.find((one) => one.network === network && one.kind === kind);
        return { count: openMoney?.count ?? 0, oldest: openMoney ? iso(openMoney.oldest) : null };
      };
      return {
        data: {
          chains: terms.map(({ network, asset }) => {
            const book = books.find((one) => one.network === network);
            const micro = (amount: bigint | null | undefined) => (amount == null ? null : Number(amount));
            return {
              network,
              asset,
              treasury: book?.treasury ?? null,
              previous_treasury: book?.previous ?? null,
              previous_empty: book?.previousEmpty ?? false,
              answers: answers(network),
              held_micro_usdc: micro(book?.held),
              booked_micro_usdc: micro(book?.booked),
              compared_at: book?.comparedAt == null ? null : iso(book.comparedAt),
              halted: book?.halted ?? null,
              deposits: openOf(network, 'deposits'),
              unfinal: openOf(network, 'unfinal'),
              withdrawals: openOf(network, 'withdrawals'),
            };
          }),
          suspense_micro_usdc: Number(suspense),
          losses_micro_usdc: Number(-losses),
          transit_micro_usdc: Number(-transit),
          fees_micro_usdc: Number(fees),
        },
      };
    },
  );
}

function addSuspense(app: FastifyInstance, { funds, consumers, contractNetworks }: AdminFundsDeps): void {
  const accountOf = async (id: string): Promise<string> => {
    if (id === OPERATOR) return id;
    const account = parseAccountId(id, contractNetworks);
    if (account !== null && (needsNoMaking(account) || (await consumers.find(account)) !== null)) return account;
    throw new GatewayError(
      'invalid_request',
      `account must be one that exists: tollgate:local:<name>, or a wallet in CAIP-10; or ${OPERATOR} for money of your own`,
      { param: 'account' },
    );
  };

  app.get<{ Querystring: FundPage }>(
    '/deposits',
    {
      schema: {
        summary: 'List deposits in suspense',
        description:
          'Deposits that are final but not credited to an account, the newest first: plain transfers from wallets that this gateway does not know.',
        ...ADMINISTRATION,
        querystring: fundPageSchema,
        response: { 200: pageOf(depositSchema) },
      },
    },
    async (request) => {
      const { depositRows } = requireFunds(funds).chains;
      const page = await readPage(request.query, depositRows.find, depositRows.suspense);
      return { data: page.entries.map(viewDeposit), next: page.next };
    },
  );

  app.post<{ Params: { readonly id: string }; Body: { readonly account: string } }>(
    '/deposits/:id/attribute',
    {
      config: { adminRole: 'credit' },
      schema: {
        summary: 'Credit a deposit in suspense',
        description: 'Credits a deposit to an account. This cannot be changed later.',
        ...ADMINISTRATION,
        params: {
          type: 'object',
          required: ['id'],
          properties: { id: { type: 'string', description: 'Id of the deposit, percent-encoded.' } },
        },
        body: {
          type: 'object',
          required: ['account'],
          additionalProperties: false,
          examples: [{ account: 'tollgate:local:acme' }],
          properties: {
            account: {
              type: 'string',
              maxLength: 128,
              description: `An account that exists, or a wallet in CAIP-10; ${OPERATOR} for what the operator has put there.`,
            },
          },
        },
        response: { 200: dataOf(depositSchema) },
      },
    },
    async (request) => {
      const { chains } = requireFunds(funds);
      const account = await accountOf(request.body.account);
      const deposit = await chains.deposits.attributeOne(request.params.id, account);
      if (deposit === null) throw new GatewayError('not_found', 'No deposit with this id is in suspense');
      return { data: viewDeposit(deposit) };
    },
  );
}

/** Adds `/withdrawals`: withdrawals of the operator's fees. Moves between treasuries are in `/treasury/acts`. */
function addFeeWithdrawals(app: FastifyInstance, { funds, ledger }: AdminFundsDeps): void {
  const availableIn = availableOf(ledger);

  app.post<{ Body: AmountBody & { readonly network: string; readonly address: string } }>(
    '/withdrawals',
    {
      schema: {
        summary: 'Withdraw fees',
        description:
          'Pays the operator’s fees to an address. The amount of the losses of `GET /payments` cannot be withdrawn. With an `Idempotency-Key`, a repeated request withdraws only once.',
        ...ADMINISTRATION,
        body: {
          type: 'object',
          required: ['network', 'address'],
          additionalProperties: false,
          examples: [
            { network: 'eip155:8453', address: '0x71C7656EC7ab88b098defB751B7401B5f6d8976F', amount_usd: '25' },
          ],
          ...eitherAmount,
          properties: {
            network: networkField(),
            address: addressField(),
            ...amountProperties,
          },
        },
        response: { 201: dataOf(withdrawalSchema) },
      },
    },
    async (request, reply) => {
      const known = requireFunds(funds);
      const { network } = termsOf(known, request.body.network);
      const amount = amountOf(request.body);
      const id = withdrawalIdOf(OPERATOR, request.headers['idempotency-key']);
      const lost = -(await availableIn(LOSSES));
      // A repeated request for the same withdrawal must get the same answer, so losses are checked only for a new one.
      const isNew = (await known.chains.withdrawalRows.find(id)) === null;
      if (isNew && lost > 0n && (await availableIn(FEES)) - amount < lost)
        throw new GatewayError(
          'unprocessable',
          `Losses of ${formatUsd(lost)} USDC are not paid back yet. This amount of the fees cannot be withdrawn`,
        );
      try {
        const withdrawal = await known.chains.withdrawals.request({
          id,
          network,
          account: OPERATOR,
          source: FEES,
          address: request.body.address,
          amount,
          handedOut: false,
        });
        return await reply.code(201).send({ data: viewWithdrawal(withdrawal) });
      } catch (error) {
        throw withdrawalError(error);
      }
    },
  );

  app.get<{ Querystring: FundPage }>(
    '/withdrawals',
    {
      schema: {
        summary: 'List withdrawals of fees',
        ...ADMINISTRATION,
        querystring: fundPageSchema,
        response: { 200: pageOf(withdrawalSchema) },
      },
    },
    async (request) => {
      const { withdrawalRows } = requireFunds(funds).chains;
      const page = await readPage(request.query, withdrawalRows.find, (before, limit) =>
        withdrawalRows.listOf(FEES, before, limit),
      );
      return { data: page.entries.map(viewWithdrawal), next: page.next };
    },
  );
}
