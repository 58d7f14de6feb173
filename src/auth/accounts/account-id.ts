import bs58 from 'bs58';
import { parseEvmAddress } from '#wire/evm-address';
import { GatewayError } from '#wire/errors';
import type { Caller } from '#gateway';
import { isSubjectAccount } from '../oauth/subject-account.ts';

/*
 * An account has two names. The ledger's name is `eip155:<address in lower case>` or `solana:<address>` for an
 * ordinary wallet, which is one account whatever network it signs on; `eip155:<chain>:<address>` for a contract
 * wallet, which exists on one chain; `tollgate:local:<name>` for an account without a wallet;
 * `oauth:<issuer>:<subject>` for the subject of an access token. The other name is CAIP-10, with a network. Every
 * answer shows that one.
 */

const BASE_CHAIN = '8453';
const SOLANA_MAINNET = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';

/** The account of a development gateway: without a wallet, filled with play money. */
export const DEVELOPMENT_ACCOUNT = 'tollgate:local:dev';

const LOCAL = /^tollgate:local:[a-z0-9-]{1,64}$/;
const EVM = /^eip155:(?:(\d{1,32}):)?(0x[0-9a-fA-F]{40})$/;
/** Stands before the CAIP-10 id of a contract wallet, which looks like an ordinary wallet's. */
const CONTRACT = 'contract:';
const SOLANA = /^solana:(?:[1-9A-HJ-NP-Za-km-z]{32}:)?([1-9A-HJ-NP-Za-km-z]{32,44})$/;
/** Longer than any account id. Longer texts are refused unread. */
const LENGTH_MAX = 128;

/** Ledger name of the account without a wallet that is called `name`. Throws GatewayError `invalid_request`. */
export function localAccount(name: string): string {
  const account = `tollgate:local:${name}`;
  if (!LOCAL.test(account)) {
    throw new GatewayError(
      'invalid_request',
      'An account name has 1 to 64 characters: small letters, digits and hyphens',
      { param: 'name' },
    );
  }
  return account;
}

/** Whether an account is a wallet's, an ordinary one's or a contract's. */
export function isWallet(account: string): boolean {
  return account.startsWith('eip155:') || account.startsWith('solana:');
}

/**
 * Whether an account exists without having been made. Accounts of wallets and of subjects of an issuer do; local
 * accounts do not.
 */
export function needsNoMaking(account: string): boolean {
  return isWallet(account) || isSubjectAccount(account);
}

/**
 * Ledger name of an account given by either of its names; null when the text is neither, or has an EVM address with
 * a wrong digit. An EVM address on a chain is an ordinary wallet's, `contract:` before it a contract wallet's. On
 * `contractNetworks` (CAIP-2), where contract wallets sign in, an address alone could be either's: throws
 * GatewayError `invalid_request` that gives both forms, as money for the wrong one is lost.
 */
export function parseAccountId(text: string, contractNetworks: readonly string[] = []): string | null {
  if (text.length > LENGTH_MAX) return null;
  if (LOCAL.test(text) || isSubjectAccount(text)) return text;
  const isContract = text.startsWith(CONTRACT);
  const evm = EVM.exec(isContract ? text.slice(CONTRACT.length) : text);
  if (evm) {
    const [, chain, digits] = evm;
    const address = parseEvmAddress(digits!);
    if (address === null || (isContract && chain === undefined)) return null;
    if (isContract) return `eip155:${chain}:${address}`;
    if (chain !== undefined && contractNetworks.includes(`eip155:${chain}`)) {
      const message = `${text} may be an ordinary wallet or a contract: say eip155:${address} for the wallet, or ${CONTRACT}${text} for the contract`;
      throw new GatewayError('invalid_request', message, { param: 'account' });
    }
    return `eip155:${address}`;
  }
  const address = SOLANA.exec(text)?.[1];
  if (address !== undefined && bs58.decodeUnsafe(address)?.length === 32) return `solana:${address}`;
  return null;
}

/**
 * CAIP-10 id of a ledger account. Ordinary wallets, which are one account on every network, are shown on the first
 * of `networks` (CAIP-2) of their family: the gateway's own chain. Where it has none, on Base or on Solana's
 * mainnet.
 */
export function toCaip10(account: string, networks: readonly string[]): string {
  const own = (family: string, usual: string) =>
    networks.find((network) => network.startsWith(family)) ?? family + usual;
  if (account.startsWith('eip155:0x')) return account.replace('eip155', own('eip155:', BASE_CHAIN));
  if (account.startsWith('solana:') && !account.includes(':', 'solana:'.length))
    return account.replace('solana', own('solana:', SOLANA_MAINNET));
  return account;
}

/** CAIP-10 id of a caller's account: with the network that was signed for, where the account is the wallet's own. */
export function callerCaip10(
  { account, wallet, member }: Pick<Caller, 'account' | 'wallet' | 'member'>,
  networks: readonly string[],
): string {
  return (member === undefined ? wallet?.caip10 : undefined) ?? toCaip10(account, networks);
}
