import { hash, randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#errors';
import { parseEvmAddress } from '#config';
import { earningsOf, escrowOf } from '#billing';
import { type Withdrawal, type Wallets, WithdrawalProblem } from '#chains';
import { isDevelopment, providerIdOf } from '#accounts';
import { parseIdempotencyKey } from '#call';
import {
  refuseRestricted,
  requireFullRights,
  type KeyStore,
  requireFreshSignature,
  type Nonces,
  type Identity,
  type AdmissionOf,
} from '#auth';
import { requireFunds, termsOf, type Funds, withFunds } from '#payments/on-chains';
import { amountOf, amountProperties, eitherAmount, type AmountBody } from '../account/body-fields.ts';
import { fundPageSchema, noBody, dataOf, pageOf, readPage, type FundPage } from '../route-schemas.ts';
import { viewWithdrawal, withdrawalSchema, addressField, networkField, iso } from './fund-views.ts';
import { familyOf, ownWallet, shownAddress } from './wallets-routes.ts';

export interface WithdrawalsDeps {
  readonly funds: Funds | null;
  readonly keys: Pick<KeyStore, 'find'>;
  readonly nonces: Pick<Nonces, 'use'>;
  readonly identity: Pick<Identity, 'providerId'>;
  readonly now: () => number;
}

interface WithdrawalBody extends AmountBody {
  readonly network: string;
  readonly source: 'balance' | 'earnings';
  readonly address?: string;
  readonly submit?: 'gateway' | 'self';
}

interface IdParams {
  readonly id: string;
}

const TAGS = ['Money'];
const idParams = { type: 'object', required: ['id'], properties: { id: { type: 'string', maxLength: 128 } } } as const;
const RIGHTS = { what: 'withdraw money or cancel it', instead: 'sign in with the wallet of the account' };
const SEE = 'see withdrawals';

/**
 * The id of a withdrawal. The same account and idempotency key give the same id, so a repeated request makes only one
 * withdrawal.
 */
export function withdrawalIdOf(account: string, key: string | string[] | undefined): string {
  return key === undefined
    ? randomBytes(32).toString('hex')
    : hash('sha256', `withdrawal ${account} ${parseIdempotencyKey(key)}`);
}

/** Adds `/withdrawals`, which pays money out. `app` must already admit callers. */
export function addWithdrawalsRoutes(app: FastifyInstance, deps: WithdrawalsDeps, admissionOf: AdmissionOf): void {
  addRequest(app, deps, admissionOf);
  addReading(app, deps, admissionOf);
  addChanges(app, deps, admissionOf);
}

async function find(funds: Funds | null, account: string, id: string): Promise<Withdrawal | null> {
  const withdrawal = await requireFunds(funds).chains.withdrawalRows.find(id);
  return withdrawal?.account === account ? withdrawal : null;
}

/** Finds a withdrawal. Throws the same `not_found` if it doesn't exist and if it belongs to another account. */
async function existing(funds: Funds | null, account: string, id: string): Promise<Withdrawal> {
  const withdrawal = await find(funds, account, id);
  if (withdrawal === null) throw new GatewayError('not_found', 'Withdrawal not found', { param: 'id' });
  return withdrawal;
}

function addRequest(app: FastifyInstance, deps: WithdrawalsDeps, admissionOf: AdmissionOf): void {
  const { funds, keys, nonces, identity, now } = deps;
  app.post<{ Body: WithdrawalBody }>(
    '/withdrawals',
    {
      config: { actsAs: 'owner' },
      preValidation: withFunds(funds),
      schema: {
        summary: 'Withdraw money',
        description:
          'Pays your balance, or your earnings as a provider, to the wallet of your account. An account without its own wallet is paid to a wallet that has been bound to it for long enough (`/wallets`). ' +
          'A wallet signs in for this with a nonce of `/auth/nonce`. With an `Idempotency-Key`, a repeated request withdraws only once.',
        tags: TAGS,
        headers: {
          type: 'object',
          properties: { 'idempotency-key': { type: 'string', description: '1 to 255 printable ASCII characters.' } },
        },
        body: {
          type: 'object',
          required: ['network', 'source'],
          additionalProperties: false,
          examples: [{ network: 'eip155:8453', amount_usd: '25', source: 'earnings' }],
          ...eitherAmount,
          properties: {
            network: networkField('CAIP-2, one of `/payments/chains`.'),
            ...amountProperties,
            source: {
              type: 'string',
              enum: ['balance', 'earnings'],
              description: 'What it is taken from: your balance, or what you earned as a provider.',
            },
            address: addressField('Needed if there are several addresses to choose from.'),
            submit: {
              type: 'string',
              enum: ['gateway', 'self'],
              default: 'gateway',
              description: 'Who submits it: the gateway, or you, with the authorization that you are given; EVM only.',
            },
          },
        },
        response: { 201: dataOf(withdrawalSchema) },
      },
    },
    async (request, reply) => {
      const { caller } = admissionOf(request);
      const { account } = caller;
      const known = requireFunds(funds);
      await requireFullRights(keys, caller, RIGHTS);
      if (isDevelopment(caller))
        throw new GatewayError(
          'permission_denied',
          'The balance of a development key is play money and cannot be withdrawn',
        );
      const { body } = request;
      const { network } = termsOf(known, body.network);
      const amount = amountOf(body);
      const handedOut = body.submit === 'self';
      if (handedOut && familyOf(network) !== 'eip155')
        throw new GatewayError(
          'invalid_request',
          `submit must be gateway on ${network}: only EVM networks have authorizations that others can submit`,
          { param: 'submit' },
        );
      const { wallets } = known.chains;
      const address = await withdrawalAddress({
        account,
        network,
        address: body.address,
        wallets,
        cooldownMs: known.cooldownMs,
        now: now(),
      });
      const id = withdrawalIdOf(account, request.headers['idempotency-key']);
      const source = body.source === 'balance' ? escrowOf(account) : earningsOf(providerIdOf(account, identity));
      // The other checks come first, so that a refused body doesn't use up the nonce.
      await requireFreshSignature(caller, nonces);
      try {
        const withdrawal = await known.chains.withdrawals.request({
          id,
          network,
          account,
          source,
          address,
          amount,
          handedOut,
        });
        return await reply.code(201).send({ data: viewWithdrawal(withdrawal) });
      } catch (error) {
        throw withdrawalError(error);
      }
    },
  );
}

function addReading(app: FastifyInstance, { funds, keys }: WithdrawalsDeps, admissionOf: AdmissionOf): void {
  app.get<{ Querystring: FundPage }>(
    '/withdrawals',
    {
      config: { actsAs: 'viewer' },
      schema: {
        summary: 'List your withdrawals',
        description: 'The newest first.',
        tags: TAGS,
        querystring: fundPageSchema,
        response: { 200: pageOf(withdrawalSchema) },
      },
    },
    async (request) => {
      const { account, key } = admissionOf(request).caller;
      await refuseRestricted(keys, key, SEE);
      const { withdrawalRows } = requireFunds(funds).chains;
      const page = await readPage(
        request.query,
        (id) => find(funds, account, id),
        (before, limit) => withdrawalRows.list(account, before, limit),
      );
      return { data: page.entries.map(viewWithdrawal), next: page.next };
    },
  );

  app.get<{ Params: IdParams }>(
    '/withdrawals/:id',
    {
      config: { actsAs: 'viewer' },
      schema: {
        summary: 'Show a withdrawal',
        tags: TAGS,
        params: idParams,
        response: { 200: dataOf(withdrawalSchema) },
      },
    },
    async (request) => {
      const { account, key } = admissionOf(request).caller;
      await refuseRestricted(keys, key, SEE);
      return { data: viewWithdrawal(await existing(funds, account, request.params.id)) };
    },
  );
}

function addChanges(app: FastifyInstance, { funds, keys }: WithdrawalsDeps, admissionOf: AdmissionOf): void {
  app.post<{ Params: IdParams }>(
    '/withdrawals/:id/cancel',
    {
      config: { actsAs: 'owner' },
      schema: {
        summary: 'Cancel a withdrawal',
        description:
          'Gives the money back if the withdrawal is not signed yet. After that the status is 422, because the withdrawal may be on its chain.',
        tags: TAGS,
        body: noBody,
        params: idParams,
        response: { 200: dataOf(withdrawalSchema) },
      },
    },
    async (request) => {
      const { caller } = admissionOf(request);
      const { id } = await existing(funds, caller.account, request.params.id);
      await requireFullRights(keys, caller, RIGHTS);
      const canceled = await requireFunds(funds).chains.withdrawals.cancel(id);
      if (canceled === null)
        throw new GatewayError(
          'unprocessable',
          'This withdrawal can no longer be canceled, because it is signed or finished',
        );
      return { data: viewWithdrawal(canceled) };
    },
  );

  app.post<{ Params: IdParams }>(
    '/withdrawals/:id/submit',
    {
      config: { actsAs: 'owner' },
      schema: {
        summary: 'Have a withdrawal submitted',
        description:
          'The gateway submits what you were to submit yourself (`submit: self`). The authorization that you were given stays good, and pays once, whoever submits it.',
        tags: TAGS,
        body: noBody,
        params: idParams,
        response: { 200: dataOf(withdrawalSchema) },
      },
    },
    async (request) => {
      const { caller } = admissionOf(request);
      const { id } = await existing(funds, caller.account, request.params.id);
      await requireFullRights(keys, caller, RIGHTS);
      const submitted = await requireFunds(funds).chains.withdrawals.submit(id);
      if (submitted === null)
        throw new GatewayError('unprocessable', 'This withdrawal is finished, so there is nothing to submit');
      return { data: viewWithdrawal(submitted) };
    },
  );
}

interface AddressQuestion {
  readonly account: string;
  readonly network: string;
  /** The address as the caller wrote it. If it is undefined, the gateway chooses one. */
  readonly address: string | undefined;
  readonly wallets: Pick<Wallets, 'list'>;
  readonly cooldownMs: number;
  readonly now: number;
}

/**
 * Returns the address to which an account's money may go on a network. For a wallet account this is the wallet itself.
 * For other accounts it is a wallet that was bound long enough ago. Rejects with GatewayError `invalid_request` or
 * `permission_denied`, which says what would be right.
 */
async function withdrawalAddress({
  account,
  network,
  address,
  wallets,
  cooldownMs,
  now,
}: AddressQuestion): Promise<string> {
  const family = familyOf(network);
  const parsed = address === undefined ? null : family === 'solana' ? address : parseEvmAddress(address);
  if (address !== undefined && parsed === null)
    throw refused('address must be an EVM address: 0x and 40 hex digits, in lower case or with their checksum');

  const own = ownWallet(account);
  if (own !== null) {
    const text = shownAddress(own);
    if (own.family !== family || (own.network !== null && own.network !== network)) {
      const where = own.network ?? (own.family === 'eip155' ? 'EVM networks' : 'Solana');
      throw new GatewayError('invalid_request', `The wallet of this account, ${text}, is on ${where}. Withdraw there`, {
        param: 'network',
      });
    }
    if (parsed !== null && parsed !== own.address)
      throw refused(`Withdrawals of this account always go to its own wallet, ${text}. Omit address`);
    return text;
  }

  const bound = (await wallets.list(account)).flatMap(({ wallet, boundAt }) => {
    const known = ownWallet(wallet);
    return known?.family === family ? [{ ...known, from: boundAt + cooldownMs }] : [];
  });
  const chosen =
    parsed === null ? (bound.length === 1 ? bound[0] : undefined) : bound.find(({ address }) => address === parsed);
  if (!chosen) {
    const names = bound.map(shownAddress).join(', ');
    if (bound.length > 0) throw refused(`address must be one of the wallets that are bound to this account: ${names}`);
    const kind = family === 'eip155' ? 'an EVM' : 'a Solana';
    throw refused(
      `This account has no wallet on ${network}. Bind ${kind} wallet to it first, with POST /api/v1/wallets`,
    );
  }
  if (chosen.from > now)
    throw new GatewayError(
      'permission_denied',
      `The wallet ${shownAddress(chosen)} was bound recently. Withdrawals to it are possible from ${iso(chosen.from)} on`,
      {
        param: 'address',
      },
    );
  return shownAddress(chosen);
}

const refused = (message: string) => new GatewayError('invalid_request', message, { param: 'address' });

const RETRY_S: Readonly<Partial<Record<WithdrawalProblem['code'], number>>> = {
  rate_limit_exceeded: 3_600,
  service_unavailable: 60,
};
/** Names of the body's fields, by the names that the problems use. */
const PARAMS: Readonly<Record<string, string>> = { amount: 'amount_usd' };

/** Turns a refused withdrawal into a GatewayError. Returns any other error unchanged. */
export function withdrawalError(error: unknown): unknown {
  if (!(error instanceof WithdrawalProblem)) return error;
  const { code, message, param } = error;
  return new GatewayError(code, message, {
    ...(param === undefined ? {} : { param: PARAMS[param] ?? param }),
    ...(RETRY_S[code] === undefined ? {} : { retryAfterS: RETRY_S[code] }),
    cause: error,
  });
}
