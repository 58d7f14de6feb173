import { randomBytes } from 'node:crypto';
import nacl from 'tweetnacl';
import bs58 from 'bs58';

/**
 * A key pair that signs texts, on one chain. No field contains the secret half, so printing a wallet doesn't show it.
 */
export interface Wallet {
  readonly namespace: 'solana' | 'eip155';
  /** CAIP-2 id, such as `eip155:8453`. */
  readonly chainId: string;
  /** For Solana base58, for EVM hex with the EIP-55 checksum. */
  readonly address: string;
  /** CAIP-10 id: the chain and the address. */
  readonly accountId: string;
  /** The id of a provider with this wallet: the address in base58 (Solana) or in lower-case hex (EVM). */
  readonly providerId: string;
  /** Signs a text. Returns an Ed25519 signature in base58 (Solana) or an EIP-191 signature in 0x-hex (EVM). */
  sign(text: string): Promise<string>;
}

/** A wallet can't be used. `message` says what is wrong and what would be right, and never contains a key. */
export class WalletError extends Error {
  override readonly name = 'WalletError';
}

/** Base, the default chain of an EVM wallet. */
const BASE = 'eip155:8453';

/** CAIP-2 names a Solana cluster by the first characters of its genesis hash. */
const SOLANA_CLUSTERS: Readonly<Record<string, string>> = {
  mainnet: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  devnet: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
  testnet: '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z',
};
const SOLANA_MAINNET = `solana:${SOLANA_CLUSTERS['mainnet']}`;

const SOLANA_REFERENCE = /^[1-9A-HJ-NP-Za-km-z]{32}$/;
const EVM_REFERENCE = /^[1-9][0-9]{0,31}$/;

const RIGHT = `Give it as CAIP-2: eip155:<number>, such as ${BASE} for Base, or ${SOLANA_MAINNET} for Solana (solana:mainnet, solana:devnet and solana:testnet are understood)`;

/** Reads a CAIP-2 id, or a Solana cluster by name (`solana:devnet`). Throws WalletError. */
export function parseChainId(text: string): Pick<Wallet, 'namespace' | 'chainId'> {
  const colon = text.indexOf(':');
  const namespace = text.slice(0, Math.max(colon, 0));
  const reference = text.slice(colon + 1);
  if (namespace === 'eip155' && EVM_REFERENCE.test(reference)) return { namespace, chainId: text };
  if (namespace === 'solana') {
    const cluster = Object.hasOwn(SOLANA_CLUSTERS, reference) ? SOLANA_CLUSTERS[reference]! : reference;
    if (SOLANA_REFERENCE.test(cluster)) return { namespace, chainId: `solana:${cluster}` };
  }
  // The text is shown only if it can't be a secret in the wrong field.
  const chain =
    text.length <= 42 && /^[a-z0-9]{1,12}(?::|$)/i.test(text) && !/[0-9a-f]{40}/i.test(text)
      ? ` ${JSON.stringify(text)}`
      : '';
  throw new WalletError(`The chain id${chain} is not a chain that a wallet can sign in on. ${RIGHT}`);
}

/**
 * Creates a wallet. `fileText` is the content of its keypair file: for Solana the JSON array that solana-keygen writes,
 * for EVM 0x-hex.
 */
export async function createWallet(
  chain: 'solana' | 'evm',
): Promise<{ readonly wallet: Wallet; readonly fileText: string }> {
  if (chain === 'solana') {
    const { secretKey } = nacl.sign.keyPair.fromSeed(randomBytes(32));
    return {
      wallet: solanaWallet(SOLANA_MAINNET, secretKey, 'The new key'),
      fileText: `${JSON.stringify([...secretKey])}\n`,
    };
  }
  const secret = parseEvmSecret(randomBytes(32).toString('hex'), 'The new key')!;
  return { wallet: await evmWallet(BASE, secret), fileText: `${secret}\n` };
}

/** Order of the group of secp256k1. A private key is greater than 0 and less than this. */
const SECP256K1_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

const SOLANA_KEY_BYTES = 64;
const SEED_BYTES = 32;
/** Longer than 64 bytes are in base58. The bound is needed because decoding takes quadratic time. */
const BASE58_LENGTH_MAX = 128;

/**
 * Reads the secret of an EVM account and returns it as 0x-hex. Returns null if the text isn't 32 bytes in hex. Throws
 * WalletError if the bytes aren't a valid key.
 */
export function parseEvmSecret(text: string, what: string): `0x${string}` | null {
  const digits = /^(?:0x)?([0-9a-fA-F]{64})$/.exec(text)?.[1]?.toLowerCase();
  if (digits === undefined) return null;
  const value = BigInt(`0x${digits}`);
  if (value === 0n || value >= SECP256K1_ORDER)
    throw new WalletError(`${what} holds a number that is no private key of an EVM account`);
  return `0x${digits}`;
}

/** Reads the 64 bytes of a Solana key pair from base58. Returns null for any other text. */
export function parseBase58Keypair(text: string): Uint8Array | null {
  const bytes = text.length <= BASE58_LENGTH_MAX ? bs58.decodeUnsafe(text) : undefined;
  return bytes?.length === SOLANA_KEY_BYTES ? bytes : null;
}

/**
 * Reads the 64 bytes of a Solana key pair from a JSON array of numbers, as solana-keygen writes them. Returns null for
 * any other value.
 */
export function parseByteArray(value: unknown): Uint8Array | null {
  if (!Array.isArray(value) || value.length !== SOLANA_KEY_BYTES) return null;
  return value.every((byte) => Number.isInteger(byte) && byte >= 0 && byte <= 255)
    ? Uint8Array.from(value as number[])
    : null;
}

/**
 * Makes the wallet of a Solana key pair: 32 bytes of seed, then 32 of public key. Throws WalletError if the halves
 * don't belong together.
 */
export function solanaWallet(chainId: string, keypair: Uint8Array, what: string): Wallet {
  const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(keypair.subarray(0, SEED_BYTES));
  if (!Buffer.from(publicKey).equals(keypair.subarray(SEED_BYTES))) {
    throw new WalletError(
      `${what} holds a public key that does not match its secret key: the file is damaged, or was written by hand`,
    );
  }
  const address = bs58.encode(publicKey);
  return {
    namespace: 'solana',
    chainId,
    address,
    accountId: `${chainId}:${address}`,
    providerId: address,
    sign: async (text) => bs58.encode(nacl.sign.detached(Buffer.from(text, 'utf8'), secretKey)),
  };
}

export async function evmWallet(chainId: string, secret: `0x${string}`): Promise<Wallet> {
  // Imported only here because it loads slowly and a Solana wallet doesn't need it.
  const { privateKeyToAccount } = await import('viem/accounts');
  const account = privateKeyToAccount(secret);
  return {
    namespace: 'eip155',
    chainId,
    address: account.address,
    accountId: `${chainId}:${account.address}`,
    providerId: account.address.toLowerCase(),
    sign: (text) => account.signMessage({ message: text }),
  };
}

interface SignIn {
  /** Host of the gateway, with the port if it isn't the scheme's default port. */
  readonly domain: string;
  /** http:// or https://, on the same host. */
  readonly uri: string;
  /** A single line. */
  readonly statement?: string | undefined;
  readonly nonce?: string | undefined;
  /** Current time in epoch milliseconds. */
  readonly now: number;
  readonly lifetimeMs: number;
}

const KINDS = { solana: 'Solana', eip155: 'Ethereum' };

/**
 * Returns the value of a `SIGN-IN-WITH-X` header: base64 of the JSON `{message, signature}`, where the message is a
 * CAIP-122 text. Rejects with WalletError.
 */
export async function signInHeader(wallet: Wallet, signIn: SignIn): Promise<string> {
  const message = signInMessage(wallet, signIn);
  return Buffer.from(JSON.stringify({ message, signature: await wallet.sign(message) })).toString('base64');
}

function signInMessage(wallet: Wallet, { domain, uri, statement, nonce, now, lifetimeMs }: SignIn): string {
  // Each value has a line of its own. The gateway refuses a message in which a value could contain another line.
  const refuse = (what: string, right: string) => {
    throw new WalletError(`${what} is not valid in a sign-in message. ${right}`);
  };
  if (!/^[!-~]+$/.test(domain) || URL.parse(`https://${domain}/`)?.host === undefined || /[/@?#\\]/.test(domain))
    refuse(
      `The domain ${JSON.stringify(domain)}`,
      'Give the host of the gateway alone, such as gateway.example or 127.0.0.1:8402',
    );
  if (!/^https?:\/\/[!-~]+$/.test(uri) || !URL.canParse(uri))
    refuse(`The URI ${JSON.stringify(uri)}`, 'Give the address of the gateway, such as https://gateway.example');
  if (statement !== undefined && (statement === '' || /[^\x20-\x7e]/.test(statement)))
    refuse('The statement', 'Give one line of printable ASCII characters');
  if (nonce !== undefined && !/^[A-Za-z0-9]{8,}$/.test(nonce))
    refuse('The nonce', 'Give it as the gateway issued it, letters and digits');

  return [
    `${domain} wants you to sign in with your ${KINDS[wallet.namespace]} account:`,
    wallet.address,
    '',
    ...(statement === undefined ? [] : [statement, '']),
    `URI: ${uri}`,
    'Version: 1',
    `Chain ID: ${wallet.chainId}`,
    ...(nonce === undefined ? [] : [`Nonce: ${nonce}`]),
    `Issued At: ${new Date(now).toISOString()}`,
    `Expiration Time: ${new Date(now + lifetimeMs).toISOString()}`,
  ].join('\n');
}
