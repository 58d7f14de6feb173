import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#errors';
import { checksummed } from '#config';
import type { BoundWallet } from '#chains';
import type { Caller } from '#accounts';
import { isWallet, parseAccountId, toCaip10 } from '#accounts/names';
import {
  refuseRestricted,
  requireFullRights,
  type KeyStore,
  requireFreshSignature,
  type Nonces,
  type SignIn,
  type AdmissionOf,
} from '#auth';
import { requireFunds, type Funds, withFunds } from '#payments/on-chains';
import { dataOf } from '../route-schemas.ts';
import { iso } from './fund-views.ts';

export interface WalletsDeps {
  readonly funds: Funds | null;
  readonly keys: Pick<KeyStore, 'find'>;
  readonly nonces: Pick<Nonces, 'use'>;
  readonly signIn: Pick<SignIn, 'known' | 'verify'>;
  /** CAIP-2 ids of the gateway's own chains. */
  readonly networks: readonly string[];
}

const WALLETS_MAX = 20;
const TAGS = ['Money'];
const RIGHTS = { what: 'say which wallets belong to an account', instead: 'use an API key of the account' };

const walletSchema = {
  title: 'Wallet',
  type: 'object',
  required: ['wallet', 'address', 'bound_at', 'paid_from'],
  properties: {
    wallet: { type: 'string', description: 'CAIP-10; on every network of its family' },
    address: { type: 'string' },
    bound_at: { type: 'string', description: 'RFC 3339' },
    paid_from: { type: 'string', description: 'Earliest time of withdrawals to it, RFC 3339' },
  },
} as const;

/**
 * Adds `/wallets`: the wallets that are bound to an account which isn't itself a wallet. Their payments are credited to
 * the account, and the account can withdraw to them. `app` must already admit callers.
 */
export function addWalletsRoutes(app: FastifyInstance, deps: WalletsDeps, admissionOf: AdmissionOf): void {
  const { funds, keys, nonces, networks } = deps;
  app.get(
    '/wallets',
    {
      config: { actsAs: 'viewer' },
      schema: {
        summary: 'List your wallets',
        description: 'Wallets that are bound to your account, the oldest first.',
        tags: TAGS,
        response: { 200: dataOf({ type: 'array', items: walletSchema }) },
      },
    },
    async (request) => {
      const { account, key } = admissionOf(request).caller;
      await refuseRestricted(keys, key, 'see the wallets of its account');
      const { chains, cooldownMs } = requireFunds(funds);
      return { data: (await chains.wallets.list(account)).map(viewOf(networks, cooldownMs)) };
    },
  );

  addBinding(app, deps, admissionOf);

  app.delete<{ Params: { readonly id: string } }>(
    '/wallets/:id',
    {
      config: { actsAs: 'owner' },
      schema: {
        summary: 'Remove a wallet',
        description:
          'Later transfers of the wallet belong to the wallet itself. If you bind it again, the waiting time starts again.',
        tags: TAGS,
        params: {
          type: 'object',
          required: ['id'],
          properties: { id: { type: 'string', description: 'The wallet in CAIP-10.' } },
        },
        response: {
          200: dataOf({
            type: 'object',
            required: ['wallet', 'deleted'],
            properties: { wallet: { type: 'string' }, deleted: { type: 'boolean' } },
          }),
        },
      },
    },
    async (request) => {
      const { caller } = admissionOf(request);
      const { chains } = requireFunds(funds);
      await requireFullRights(keys, caller, RIGHTS);
      const wallet = parseAccountId(request.params.id);
      const missing = () => new GatewayError('not_found', 'Wallet not found', { param: 'id' });
      // The wallet is looked up first, so that a wrong id doesn't use up the nonce.
      if (wallet === null || (await chains.wallets.find(wallet))?.account !== caller.account) throw missing();
      await requireFreshSignature(caller, nonces);
      if (!(await chains.wallets.unbind(wallet, caller.account))) throw missing();
      return { data: { wallet: toCaip10(wallet, networks), deleted: true } };
    },
  );
}

const viewOf =
  (networks: readonly string[], cooldownMs: number) =>
  ({ wallet, boundAt }: BoundWallet) => ({
    wallet: toCaip10(wallet, networks),
    address: shownAddress(ownWallet(wallet)!),
    bound_at: iso(boundAt),
    paid_from: iso(boundAt + cooldownMs),
  });

function addBinding(app: FastifyInstance, deps: WalletsDeps, admissionOf: AdmissionOf): void {
  const { funds, keys, nonces, signIn, networks } = deps;

  /** Throws if the account is itself a wallet, because it can't use others. */
  const refuseWallets = ({ account }: Caller): void => {
    if (isWallet(account))
      throw new GatewayError(
        'invalid_request',
        `This account belongs to the wallet ${toCaip10(account, networks)}: deposits of this wallet are credited to it, and withdrawals go to this wallet. Only accounts without a wallet can bind one`,
      );
  };

  app.post<{ Body: { readonly sign_in: string } }>(
    '/wallets',
    {
      config: { actsAs: 'owner' },
      preValidation: withFunds(funds),
      schema: {
        summary: 'Bind a wallet',
        description:
          'Proves that a wallet is yours. Only for accounts that do not belong to a wallet themselves. Get a message from `/auth/nonce`, let the wallet sign it, and send the result here in the form of the header SIGN-IN-WITH-X. ' +
          'From then on, plain transfers of the wallet to a treasury are credited to your account. After a waiting time you can withdraw to the wallet.',
        tags: TAGS,
        body: {
          type: 'object',
          required: ['sign_in'],
          additionalProperties: false,
          examples: [{ sign_in: 'eyJtZXNzYWdlIjoi…' }],
          properties: {
            sign_in: {
              type: 'string',
              minLength: 1,
              maxLength: 8_192,
              description: 'Base64 of `{"message", "signature"}`.',
            },
          },
        },
        response: { 201: dataOf(walletSchema) },
      },
    },
    async (request, reply) => {
      const { caller } = admissionOf(request);
      const { chains, cooldownMs } = requireFunds(funds);
      await requireFullRights(keys, caller, RIGHTS);
      refuseWallets(caller);
      const { account } = caller;
      const value = request.body.sign_in;
      const signer = await signedBy(() => signIn.known(value) ?? signIn.verify(value, request.ip));
      if (ownWallet(signer.account)?.network !== null)
        throw new GatewayError(
          'invalid_request',
          'A contract wallet cannot be bound. Bind an ordinary wallet, or sign in with the contract wallet',
          {
            param: 'sign_in',
          },
        );
      if ((await chains.wallets.list(account)).length >= WALLETS_MAX)
        throw new GatewayError('unprocessable', `An account has at most ${WALLETS_MAX} wallets. Remove an unused one`);
      const before = await chains.wallets.find(signer.account);
      if (before !== null && before.account !== account) throw boundElsewhere();
      // All other checks come first, so that a refused request doesn't use up a nonce.
      await requireFreshSignature(caller, nonces);
      await signedBy(() => requireFreshSignature(signer, nonces));
      await chains.wallets.bind(signer.account, account);
      const bound = await chains.wallets.find(signer.account);
      if (bound?.account !== account) throw boundElsewhere();
      return reply.code(201).send({ data: viewOf(networks, cooldownMs)(bound) });
    },
  );
}

const boundElsewhere = () =>
  new GatewayError('unprocessable', 'This wallet is bound to another account. Remove it there first', {
    param: 'sign_in',
  });

/**
 * The sign-in is a field of the body, not the request's credential. So an invalid sign-in is reported as an invalid
 * field, not as 401.
 */
async function signedBy<T>(check: () => T | Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'unauthorized')
      throw new GatewayError('invalid_request', error.message, { param: 'sign_in', cause: error });
    throw error;
  }
}

interface OwnWallet {
  readonly family: 'eip155' | 'solana';
  /** EVM addresses are in lower case. */
  readonly address: string;
  /**
   * CAIP-2 id of the chain of a contract wallet. null for an ordinary wallet, which exists on all chains of its family.
   */
  readonly network: string | null;
}

const EVM = /^(eip155:\d+:|eip155:)(0x[0-9a-f]{40})$/;

/** Returns the wallet of a ledger account, or null if the account isn't a wallet. */
export function ownWallet(account: string): OwnWallet | null {
  if (account.startsWith('solana:'))
    return { family: 'solana', address: account.slice('solana:'.length), network: null };
  const [, place, address] = EVM.exec(account) ?? [];
  if (place === undefined || address === undefined) return null;
  return { family: 'eip155', address, network: place === 'eip155:' ? null : place.slice(0, -1) };
}

export const familyOf = (network: string): OwnWallet['family'] => (network.startsWith('eip155:') ? 'eip155' : 'solana');

export function formsOf({ family, address }: OwnWallet): readonly string[] {
  return family === 'solana' ? [address] : [checksummed(address), address];
}

/** The address in the form that people and block explorers use. */
export const shownAddress = ({ family, address }: OwnWallet): string =>
  family === 'solana' ? address : checksummed(address);
