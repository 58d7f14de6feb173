import { GatewayError } from '#errors';
import { earningsOf, escrowOf, formatUsd, type Ledger } from '#billing';
import type { Consumer, ConsumerStore } from '#accounts';
import { localAccount, needsNoMaking, parseAccountId, toCaip10 } from '#accounts/names';
import type { Seller } from '#network';
import { objectOf, titled } from '../route-schemas.ts';

export interface AdminAccountsDeps {
  /** CAIP-2 ids of the gateway's own chains. Contract wallets sign in on them. */
  readonly networks: readonly string[];
  readonly consumers: ConsumerStore;
  readonly ledger: Pick<Ledger, 'balance'>;
  /** The provider of an account; null if it never sold anything here. */
  readonly seller: (account: string) => Promise<Seller | null>;
}

/** `createdAt` is null for an account that has money but was never registered. */
type FoundAccount = Omit<Consumer, 'createdAt'> & { readonly createdAt: number | null };

export const accountSchema = titled(
  'Account',
  objectOf(
    {
      id: { type: 'string', description: 'Name of the account in the ledger, and in these paths.' },
      caip_account_id: { type: 'string', description: 'CAIP-10.' },
      label: { type: 'string' },
      created_at: { type: ['string', 'null'] },
      balance_micro_usdc: { type: 'integer' },
      locked_micro_usdc: { type: 'integer', description: 'Reserved for running calls.' },
      balance_usd: { type: 'string' },
      state: {
        type: 'string',
        enum: ['open', 'frozen', 'closed'],
        description: '`frozen`: no new calls and no withdrawals. `closed`: no requests.',
      },
      state_reason: { type: 'string', description: 'Why the operator changed the state last.' },
      state_since: { type: ['string', 'null'], description: 'When the operator changed the state last.' },
      total_credits_micro_usdc: { type: 'integer', description: 'What came in, minus what was taken again.' },
      total_usage_micro_usdc: { type: 'integer', description: 'Charged for calls.' },
      movements_micro_usdc: objectOf({
        credited: { type: 'integer', description: 'Added by the operator.' },
        debited: { type: 'integer', description: 'Taken by the operator.' },
        refunded: { type: 'integer', description: 'Charges of calls that the operator gave back.' },
        deposited: { type: 'integer', description: 'Paid in over a chain.' },
        withdrawn: { type: 'integer', description: 'Paid out over a chain.' },
        paid_out: { type: 'integer', description: 'Left at a close, and paid outside of the gateway.' },
        written_off: { type: 'integer', description: 'Left at a close, and kept by the operator.' },
        other: { type: 'integer', description: 'Any other movement. Negative if more was taken.' },
      }),
      provider: {
        type: ['object', 'null'],
        description: 'The provider that the account is. null if it never registered services.',
        required: ['provider', 'connected', 'banned', 'earnings_micro_usdc', 'earnings_usd'],
        properties: {
          provider: { type: 'string', description: 'Public key' },
          connected: { type: 'boolean' },
          banned: { type: 'boolean' },
          earnings_micro_usdc: { type: 'integer', description: 'What it has left to be paid' },
          earnings_usd: { type: 'string' },
        },
      },
    },
    ['total_credits_micro_usdc', 'total_usage_micro_usdc', 'movements_micro_usdc', 'provider'],
  ),
);

export interface AccountParams {
  readonly id: string;
}

export const accountParams = objectOf({
  id: {
    type: 'string',
    description: 'Account id: `tollgate:local:<name>`, `oauth:<issuer>:<subject>`, or a wallet in CAIP-10.',
  },
});

export async function viewAccount(match: FoundAccount, deps: AdminAccountsDeps) {
  const { account, label, createdAt, state, stateReason, stateAt } = match;
  const balance = await deps.ledger.balance(escrowOf(account));
  return {
    id: account,
    caip_account_id: toCaip10(account, deps.networks),
    label,
    created_at: createdAt === null ? null : new Date(createdAt).toISOString(),
    balance_micro_usdc: Number(balance?.available ?? 0n),
    locked_micro_usdc: Number(balance?.locked ?? 0n),
    balance_usd: formatUsd(balance?.available ?? 0n),
    state,
    state_reason: stateReason,
    state_since: stateAt === null ? null : new Date(stateAt).toISOString(),
  };
}

const LIKE_AN_ID = /^(?:contract|eip155|solana|oauth|tollgate):/i;
const ACCOUNT_IDS =
  'a wallet in CAIP-10 (eip155:<chain>:0x… in lower case or with its checksum, or solana:<network>:…), tollgate:local:<name>, or oauth:<issuer>:<subject>';

/** The provider that an account is, and its earnings. null if it has never been a provider. */
export async function viewSeller(account: string, { seller, ledger }: Pick<AdminAccountsDeps, 'seller' | 'ledger'>) {
  const stored = await seller(account);
  if (stored === null) return null;
  const remaining = (await ledger.balance(earningsOf(stored.provider)))?.available ?? 0n;
  return {
    provider: stored.provider,
    connected: stored.isConnected,
    banned: stored.isBanned,
    earnings_micro_usdc: Number(remaining),
    earnings_usd: formatUsd(remaining),
  };
}

/**
 * Finds the account of an id in a path. It must be registered, be a wallet or a subject of a token issuer, or have
 * money. Throws GatewayError `not_found`, or `invalid_request` for a wrong id, and for an address that may be an
 * ordinary wallet or a contract wallet.
 */
export async function findAccount(id: string, deps: AdminAccountsDeps): Promise<FoundAccount> {
  const account = await accountNamed(id, deps);
  const consumer = account === null ? null : await deps.consumers.find(account);
  if (consumer) return consumer;
  // A text that begins like an id is told what is wrong with it.
  if (account === null && LIKE_AN_ID.test(id))
    throw new GatewayError('invalid_request', `${JSON.stringify(id.slice(0, 200))} is no account id: ${ACCOUNT_IDS}`, {
      param: 'id',
    });
  if (account === null || !(needsNoMaking(account) || (await deps.ledger.balance(escrowOf(account)))))
    throw new GatewayError('not_found', 'Account not found');
  return { account, label: '', createdAt: null, state: 'open', stateReason: '', stateAt: null };
}

/**
 * An address may belong to an ordinary wallet or to a contract wallet. If only one of the two has an account, this
 * account is meant.
 */
async function accountNamed(id: string, { networks, consumers, ledger }: AdminAccountsDeps): Promise<string | null> {
  try {
    return parseAccountId(id, networks);
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
}

export interface NewAccountBody {
  readonly name?: string;
  readonly account?: string;
  readonly label?: string;
}

/** Returns the id for a new account. Throws GatewayError `invalid_request`. */
export function newAccountId({ name, account }: NewAccountBody, contractNetworks: readonly string[]): string {
  if ((name === undefined) === (account === undefined))
    throw new GatewayError('invalid_request', 'Give either name or account', { param: 'name' });
  if (name !== undefined) return localAccount(name);
  const parsed = parseAccountId(account!, contractNetworks);
  if (parsed !== null) return parsed;
  throw new GatewayError('invalid_request', `account must be ${ACCOUNT_IDS}`, { param: 'account' });
}
