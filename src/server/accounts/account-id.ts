import { hash } from 'node:crypto';
import bs58 from 'bs58';
import { parseEvmAddress } from '#config/evm-address';
import { GatewayError } from '#errors';
import type { Caller } from './caller.ts';

/*
 * An account has two names: the ledger's name and a CAIP-10 id. The ledger's name of an ordinary wallet is
 * `eip155:<address in lower case>` or `solana:<address>`, because the wallet is one account on all networks. A contract
 * wallet exists on one chain, so its name is `eip155:<chain>:<address>`. An account without a wallet is
 * `tollgate:local:<name>`. The subject of an access token is `oauth:<issuer>:<subject>`. The CAIP-10 id has a network.
 * Every response shows the CAIP-10 id.
 */

const BASE_CHAIN = '8453';
const SOLANA_MAINNET = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';

/** The account of a development gateway. It has no wallet, and its balance is play money. */
export const DEVELOPMENT_ACCOUNT = 'tollgate:local:dev';

const LOCAL = /^tollgate:local:[a-z0-9-]{1,64}$/;
const EVM = /^eip155:(?:(\d{1,32}):)?(0x[0-9a-fA-F]{40})$/;
/** Characters of base58. */
const BASE58 = '[1-9A-HJ-NP-Za-km-z]';
/** The forms of account ids, for the reference. Whether a checksum or an encoding is right, no pattern can say. */
export const ACCOUNT_ID_PATTERN = `^(?:(?:eip155:(?:[0-9]{1,32}:)?|contract:eip155:[0-9]{1,32}:)0x[0-9a-fA-F]{40}|solana:(?:${BASE58}{32}:)?${BASE58}{32,44}|tollgate:local:[a-z0-9-]{1,64}|oauth:[-_a-z0-9]{1,32}:(?:[-.a-zA-Z0-9]|%[0-9A-F]{2}){1,64})$`;
/** The forms of the ids of providers, which are public keys or accounts, for the reference. */
export const PROVIDER_ID_PATTERN = ACCOUNT_ID_PATTERN.replace('^(?:', `^(?:0x[0-9a-fA-F]{40}|${BASE58}{32,44}|`);
/** Prefix for the CAIP-10 id of a contract wallet, because the id alone looks like one of an ordinary wallet. */
const CONTRACT = 'contract:';
const SOLANA = /^solana:(?:[1-9A-HJ-NP-Za-km-z]{32}:)?([1-9A-HJ-NP-Za-km-z]{32,44})$/;
/** No account id is this long. Longer texts are refused without parsing. */
const LENGTH_MAX = 128;

/** The ledger name of the local account `name`. Throws GatewayError `invalid_request` for an invalid name. */
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

export function isWallet(account: string): boolean {
  return account.startsWith('eip155:') || account.startsWith('solana:');
}

/** Whether anybody can have as many of these accounts as they like: wallets, and organisations that wallets make. */
export const costsNothing = (account: string): boolean => isWallet(account) || ORGANISATION.test(account);
const ORGANISATION = /^tollgate:local:org-[0-9a-f]{16}$/;

/**
 * Whether an account exists without being created. This holds for accounts of wallets and of an issuer's subjects, but
 * not for local accounts.
 */
export function needsNoMaking(account: string): boolean {
  return isWallet(account) || isSubjectAccount(account);
}

/**
 * The ledger name of an account, from either of its names. null if the text is neither, or has an EVM address with a
 * wrong checksum. An EVM address on a chain means an ordinary wallet. With the prefix `contract:` it means a contract
 * wallet. On `contractNetworks` (CAIP-2) contract wallets can sign in, so an address without the prefix is ambiguous,
 * and money for the wrong account would be lost. Throws GatewayError `invalid_request` then, with both forms in its
 * text.
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
 * The CAIP-10 id of a ledger account. An ordinary wallet, which is one account on all networks, gets the first network
 * of its family in `networks` (CAIP-2), the gateway's own chains. Without one it gets Base or Solana's mainnet.
 */
export function toCaip10(account: string, networks: readonly string[]): string {
  const own = (family: string, usual: string) =>
    networks.find((network) => network.startsWith(family)) ?? family + usual;
  if (account.startsWith('eip155:0x')) return account.replace('eip155', own('eip155:', BASE_CHAIN));
  if (account.startsWith('solana:') && !account.includes(':', 'solana:'.length))
    return account.replace('solana', own('solana:', SOLANA_MAINNET));
  return account;
}

/**
 * The CAIP-10 id of a caller's account. If the account is the caller's own wallet, it has the network that the wallet
 * signed for.
 */
export function callerCaip10(
  { account, wallet, member }: Pick<Caller, 'account' | 'wallet' | 'member'>,
  networks: readonly string[],
): string {
  return (member === undefined ? wallet?.caip10 : undefined) ?? toCaip10(account, networks);
}

/*
 * The account of a subject of an OAuth issuer: `oauth:<issuer>:<subject>`, which is a valid CAIP-10 id. `<issuer>` is
 * the issuer's host with `_` instead of dots. If the issuer's URL has more than a host, such as a path or a port, or if
 * the host is long, `<issuer>` ends in a digest of the whole URL. So two realms of one host are two issuers.
 * `<subject>` is the subject, with percent-encoding for characters that CAIP-10 does not allow. A long subject is
 * replaced by its SHA-256, which is longer than any subject that is written out.
 */

const WRITTEN_LENGTH_MAX = 63;
const REFERENCE_LENGTH_MAX = 32;
const DIGEST_DIGITS = 12;

const FORM = /^oauth:[-_a-z0-9]{1,32}:([-.%a-zA-Z0-9]{1,64})$/;
const DIGEST = /^[0-9a-f]{64}$/;
const HOST = /^[-a-z0-9]+(?:\.[-a-z0-9]+)*$/;

/**
 * The ledger name of a subject's account. `issuer` is the issuer's whole URL, exactly as the issuer writes it.
 * `subject` is a well-formed text and not empty.
 */
export function subjectAccount(issuer: string, subject: string): string {
  const written = encode(subject);
  return `oauth:${referenceOf(issuer)}:${written.length <= WRITTEN_LENGTH_MAX ? written : hash('sha256', subject)}`;
}

/**
 * Whether a text is the name of such an account. Each account has exactly one name, so a text with a needless
 * percent-encoding is not accepted.
 */
export function isSubjectAccount(text: string): boolean {
  const written = FORM.exec(text)?.[1];
  if (written === undefined) return false;
  if (written.length > WRITTEN_LENGTH_MAX) return DIGEST.test(written);
  try {
    return encode(decodeURIComponent(written)) === written;
  } catch {
    return false;
  }
}

function encode(subject: string): string {
  return encodeURIComponent(subject).replace(
    /[!'()*_~]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function referenceOf(issuer: string): string {
  const { host, hostname } = new URL(issuer);
  const name = hostname.replaceAll('.', '_');
  const isBare = issuer.replace(/\/$/, '') === `https://${host}` && HOST.test(host);
  if (isBare && name.length <= REFERENCE_LENGTH_MAX) return name;
  const head = name.replace(/[^-_a-z0-9]/g, '').slice(0, REFERENCE_LENGTH_MAX - 1 - DIGEST_DIGITS);
  return `${head}_${hash('sha256', issuer).slice(0, DIGEST_DIGITS)}`;
}

const ORDINARY_WALLET = /^(?:solana:([1-9A-HJ-NP-Za-km-z]{32,44})|eip155:(0x[0-9a-f]{40}))$/;

interface ProviderIds {
  providerId(providerName: string): string;
}

/**
 * The public key that identifies the owner of `account` (a ledger account) as a provider. An ordinary wallet has its
 * own address. For another account the key is derived from the gateway's identity and never changes.
 */
export function providerIdOf(account: string, identity: ProviderIds): string {
  const wallet = ORDINARY_WALLET.exec(account);
  // Derived ids never clash with those of configured providers, because a provider's name cannot contain a colon.
  return wallet?.[1] ?? wallet?.[2] ?? identity.providerId(`account:${account}`);
}

/**
 * The public key of the provider that an operator names by this key, by its wallet or by its account (in any form that
 * parseAccountId reads). null for any other text.
 */
export function parseProviderId(text: string, identity: ProviderIds): string | null {
  const address = parseEvmAddress(text);
  if (address !== null) return address;
  if (bs58.decodeUnsafe(text)?.length === 32) return text;
  const account = parseAccountId(text);
  return account === null ? null : providerIdOf(account, identity);
}
