import type { FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#wire';
import { escrowOf, formatUsd, type AccountTotals, type Ledger, type TransferRecord, OPERATOR_TREASURY } from '#billing';
import type { AdminGate, KeyStore, Consumer, ConsumerStore } from '#auth';
import { DEVELOPMENT_ACCOUNT, localAccount, needsNoMaking, parseAccountId, toCaip10 } from '#auth/accounts';
import { amountOf, amountProperties, type AmountBody } from './amount.ts';
import { keyBodyProperties, keyChangesSchema, parseKeyBody, viewKey, type KeyBody } from './key-view.ts';
import {
  createKeyFor,
  deletedKeySchema,
  keyListSchema,
  keyNotFound,
  newKeySchema,
  oneKeySchema,
  viewKeys,
} from './keys-routes.ts';
import type { FindKeyUsage } from './key-usage.ts';
import { pageSchema, type Page } from './page.ts';

export interface AdminDeps {
  readonly gate: AdminGate;
  /** CAIP-2 ids of the gateway's own chains, on which contract wallets sign in. */
  readonly networks: readonly string[];
  readonly consumers: ConsumerStore;
  readonly keys: KeyStore;
  /** Whether anything is offered under a name. */
  readonly offers: (service: string) => boolean;
  readonly ledger: Pick<Ledger, 'balance' | 'budget' | 'transfer'>;
  readonly usage: FindKeyUsage;
  readonly totals: (account: string) => Promise<AccountTotals>;
  readonly findTransfer: (id: string) => Promise<TransferRecord | null>;
  readonly now: () => number;
}

interface AccountParams {
  readonly id: string;
}
interface NewAccountBody {
  readonly name?: string;
  readonly account?: string;
  readonly label?: string;
}
interface CreditBody extends AmountBody {
  readonly reference: string;
}

const TAGS = ['Administration'];
const SECURITY = [{ bearer: [] }];

const accountSchema = {
  type: 'object',
  required: ['id', 'caip_account_id', 'label', 'created_at', 'balance_micro_usdc', 'locked_micro_usdc', 'balance_usd'],
  properties: {
    id: { type: 'string', description: 'Name of the account in the ledger, and in these paths.' },
    caip_account_id: { type: 'string', description: 'CAIP-10.' },
    label: { type: 'string' },
    created_at: { type: ['string', 'null'] },
    balance_micro_usdc: { type: 'integer' },
    locked_micro_usdc: { type: 'integer', description: 'Reserved for running calls.' },
    balance_usd: { type: 'string' },
    total_credits_micro_usdc: { type: 'integer' },
    total_usage_micro_usdc: { type: 'integer' },
  },
} as const;
const oneAccountSchema = { type: 'object', required: ['data'], properties: { data: accountSchema } } as const;
const accountParams = {
  type: 'object',
  required: ['id'],
  properties: {
    id: {
      type: 'string',
      description: 'Account id: `tollgate:local:<name>`, `oauth:<issuer>:<subject>`, or a wallet in CAIP-10.',
    },
  },
} as const;

const keyParams = {
  type: 'object',
  required: ['id', 'hash'],
  properties: { ...accountParams.properties, hash: { type: 'string', description: 'The hash of the key.' } },
} as const;

/** The operator's side: accounts, credit and keys. Register it under `/admin/v1`. */
export function adminRoutes(deps: AdminDeps): FastifyPluginAsync {
  const { consumers, keys, ledger, totals, now } = deps;

  const view = async ({
    account,
    label,
    createdAt,
  }: Omit<Consumer, 'createdAt'> & { readonly createdAt: number | null }) => {
    const balance = await ledger.balance(escrowOf(account));
    return {
      id: account,
      caip_account_id: toCaip10(account, deps.networks),
      label,
      created_at: createdAt === null ? null : new Date(createdAt).toISOString(),
      balance_micro_usdc: Number(balance?.available ?? 0n),
      locked_micro_usdc: Number(balance?.locked ?? 0n),
      balance_usd: formatUsd(balance?.available ?? 0n),
    };
  };

  /**
   * The account of an id in a path. An address on a chain may be a wallet's or a contract's: then it is the one of
   * both that is there. Throws GatewayError `invalid_request` where neither or both are.
   */
  const accountNamed = async (id: string): Promise<string | null> => {
    try {
      return parseAccountId(id, deps.networks);
    } catch (error) {
      const both = [parseAccountId(id), parseAccountId(`contract:${id}`)].filter((account) => account !== null);
      const there = await Promise.all(
        both.map(
          async (account) => (await consumers.isKnown(account)) || (await ledger.balance(escrowOf(account))) !== null,
        ),
      );
      const known = both.filter((_, index) => there[index]);
      if (known.length === 1) return known[0]!;
      throw error;
    }
  };

  /** A registered account, a wallet's or a subject's, or one that has money without having been registered. */
  const existing = async (id: string): Promise<Omit<Consumer, 'createdAt'> & { readonly createdAt: number | null }> => {
    const account = await accountNamed(id);
    const consumer = account === null ? null : await consumers.find(account);
    if (consumer) return consumer;
    if (account === null || !(needsNoMaking(account) || (await ledger.balance(escrowOf(account)))))
      throw new GatewayError('not_found', 'Account not found');
    return { account, label: '', createdAt: null };
  };

  return async (app) => {
    app.addHook('onRequest', deps.gate);

    app.post<{ Body: NewAccountBody | undefined }>(
      '/accounts',
      {
        schema: {
          summary: 'Create an account',
          description:
            'By a `name` of its own, or by the wallet that it belongs to. An account that exists is answered as it is, with 200.',
          tags: TAGS,
          security: SECURITY,
          body: {
            type: 'object',
            additionalProperties: false,
            examples: [{ name: 'acme', label: 'Acme Ltd' }],
            properties: {
              name: {
                type: 'string',
                maxLength: 64,
                description: 'Small letters, digits and hyphens; the account is `tollgate:local:<name>`.',
              },
              account: {
                type: 'string',
                maxLength: 128,
                description: 'Instead of a name: a wallet in CAIP-10, or any account id.',
              },
              label: { type: 'string', maxLength: 128, description: 'What to call it.' },
            },
          },
          response: { 200: oneAccountSchema, 201: oneAccountSchema },
        },
      },
      async (request, reply) => {
        const account = accountOf(request.body ?? {}, deps.networks);
        const { created, consumer } = await consumers.create(account, request.body?.label ?? request.body?.name ?? '');
        return reply.code(created ? 201 : 200).send({ data: await view(consumer) });
      },
    );

    app.get<{ Querystring: Page }>(
      '/accounts',
      {
        schema: {
          summary: 'List accounts',
          description:
            'Accounts that were created here, and wallets that have a key or have paid in, the oldest first, with their balances.',
          tags: TAGS,
          security: SECURITY,
          querystring: pageSchema,
          response: {
            200: { type: 'object', required: ['data'], properties: { data: { type: 'array', items: accountSchema } } },
          },
        },
      },
      async (request) => ({ data: await Promise.all((await consumers.list(request.query)).map(view)) }),
    );

    app.get<{ Params: AccountParams }>(
      '/accounts/:id',
      {
        schema: {
          summary: 'Show an account',
          description: 'Balance and all-time figures.',
          tags: TAGS,
          security: SECURITY,
          params: accountParams,
          response: { 200: oneAccountSchema },
        },
      },
      async (request) => {
        const consumer = await existing(request.params.id);
        const [data, { credits, usage }] = await Promise.all([view(consumer), totals(consumer.account)]);
        return { data: { ...data, total_credits_micro_usdc: Number(credits), total_usage_micro_usdc: Number(usage) } };
      },
    );

    app.post<{ Params: AccountParams; Body: CreditBody }>(
      '/accounts/:id/credit',
      {
        schema: {
          summary: 'Credit an account',
          description:
            'Adds money to the account, which for a wallet need not be made before. The `reference` is yours and counts once: repeating it changes nothing, with another amount or account it is refused.',
          tags: TAGS,
          security: SECURITY,
          params: accountParams,
          body: {
            type: 'object',
            additionalProperties: false,
            examples: [{ amount_usd: 25, reference: 'invoice-17' }],
            required: ['reference'],
            properties: {
              ...amountProperties,
              reference: {
                type: 'string',
                minLength: 1,
                maxLength: 128,
                description: 'What the payment is known by, for example an invoice number.',
              },
            },
          },
          response: {
            200: {
              type: 'object',
              required: ['data'],
              properties: {
                data: {
                  type: 'object',
                  required: ['account', 'reference', 'duplicate'],
                  properties: {
                    account: accountSchema,
                    reference: { type: 'string' },
                    amount_micro_usdc: { type: 'integer' },
                    duplicate: {
                      type: 'boolean',
                      description: 'The reference had been credited before: nothing was added now.',
                    },
                  },
                },
              },
            },
          },
        },
      },
      async (request) => {
        const found = await existing(request.params.id);
        const { reference } = request.body;
        const amount = amountOf(request.body);
        // Whoever gets money belongs into the list of accounts.
        const consumer = found.createdAt === null ? (await consumers.create(found.account, '')).consumer : found;
        const transfer = { id: `credit:${reference}`, from: OPERATOR_TREASURY, to: escrowOf(consumer.account), amount };
        const result = await ledger.transfer({ ...transfer, memo: 'operator credit' });
        const before = result.ok ? null : await deps.findTransfer(transfer.id);
        if (before && (before.from !== transfer.from || before.to !== transfer.to || before.amount !== amount)) {
          throw new GatewayError('idempotency_conflict', 'This reference was used for another credit', {
            param: 'reference',
          });
        }
        if (!result.ok && !before) throw new Error(`credit ${reference} was refused: ${result.reason}`);
        return {
          data: { account: await view(consumer), reference, amount_micro_usdc: Number(amount), duplicate: !result.ok },
        };
      },
    );

    app.post<{ Params: AccountParams; Body: (KeyBody & { readonly development?: boolean }) | undefined }>(
      '/accounts/:id/keys',
      {
        schema: {
          summary: 'Create a key for an account',
          tags: TAGS,
          security: SECURITY,
          params: accountParams,
          body: {
            type: ['object', 'null'],
            additionalProperties: false,
            examples: [{ name: 'laptop', limit: 5, limit_reset: 'monthly' }],
            properties: {
              ...keyBodyProperties,
              development: {
                type: 'boolean',
                description: 'A key for play money, which production refuses. Every key of the account `dev` is one.',
              },
            },
          },
          response: { 201: newKeySchema },
        },
      },
      async (request, reply) => {
        const { account } = await existing(request.params.id);
        // Play money stays play money: a production gateway on the same database must refuse every key to it.
        const kind = request.body?.development || account === DEVELOPMENT_ACCOUNT ? 'development' : 'live';
        return reply.code(201).send(await createKeyFor(deps, account, kind, request.body));
      },
    );

    app.get<{ Params: AccountParams; Querystring: Page }>(
      '/accounts/:id/keys',
      {
        schema: {
          summary: "List an account's keys",
          tags: TAGS,
          security: SECURITY,
          params: accountParams,
          querystring: pageSchema,
          response: { 200: keyListSchema },
        },
      },
      async (request) => {
        const { account } = await existing(request.params.id);
        return { data: await viewKeys(deps, account, request.query) };
      },
    );

    app.patch<{ Params: AccountParams & { readonly hash: string }; Body: KeyBody | undefined }>(
      '/accounts/:id/keys/:hash',
      {
        schema: {
          summary: 'Change a key of an account',
          description:
            'Changes what is given and leaves the rest. A disabled key is refused until it is enabled again.',
          tags: TAGS,
          security: SECURITY,
          params: keyParams,
          body: keyChangesSchema,
          response: { 200: oneKeySchema },
        },
      },
      async (request) => {
        const { account } = await existing(request.params.id);
        const record = await keys.update(account, request.params.hash, parseKeyBody(request.body ?? {}, now()));
        if (!record) throw keyNotFound();
        return { data: await viewKey(record, deps) };
      },
    );

    app.delete<{ Params: AccountParams & { readonly hash: string } }>(
      '/accounts/:id/keys/:hash',
      {
        schema: {
          summary: 'Delete a key of an account',
          description: 'Revokes it for ever: at once here, within a second on every other gateway.',
          tags: TAGS,
          security: SECURITY,
          params: keyParams,
          response: { 200: deletedKeySchema },
        },
      },
      async (request) => {
        const { account } = await existing(request.params.id);
        if (!(await keys.delete(account, request.params.hash))) throw keyNotFound();
        return { deleted: true, data: { hash: request.params.hash, deleted: true } };
      },
    );
  };
}

function accountOf({ name, account }: NewAccountBody, contractNetworks: readonly string[]): string {
  if ((name === undefined) === (account === undefined))
    throw new GatewayError('invalid_request', 'Give either name or account', { param: 'name' });
  if (name !== undefined) return localAccount(name);
  const parsed = parseAccountId(account!, contractNetworks);
  if (parsed !== null) return parsed;
  throw new GatewayError(
    'invalid_request',
    'account is neither a wallet in CAIP-10 (eip155:… in lower case or with its checksum, or solana:…) nor tollgate:local:<name> nor oauth:<issuer>:<subject>',
    { param: 'account' },
  );
}
