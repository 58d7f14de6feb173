import bs58 from 'bs58';
import nacl from 'tweetnacl';
import { WalletError, type Wallet } from './wallet.ts';

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

/** Makes the wallet of an EVM account's secret. */
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
