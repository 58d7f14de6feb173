import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto';
import { isOffCurveAddress, type Address } from '@solana/kit';
import bs58 from 'bs58';

export const SYSTEM_PROGRAM = '11111111111111111111111111111111' as Address;
export const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA' as Address;
export const TOKEN_2022_PROGRAM = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb' as Address;
export const ASSOCIATED_TOKEN_PROGRAM = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL' as Address;
export const COMPUTE_BUDGET_PROGRAM = 'ComputeBudget111111111111111111111111111111' as Address;
export const MEMO_PROGRAM = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr' as Address;
export const MEMO_V1_PROGRAM = 'Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo' as Address;
/** A program of assertions that wallets add to protect their owners. It holds nothing and can sign for nobody. */
export const LIGHTHOUSE_PROGRAM = 'L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95' as Address;

/** Decimals of the token: its smallest unit is 1 micro-USD. */
export const DECIMALS = 6;
/** The size of a token account of the SPL Token program. */
export const TOKEN_ACCOUNT_BYTES = 165;
export const SIGNATURE_BYTES = 64;
const KEY_BYTES = 32;
/**
 * 32 bytes have at most 44 base58 digits, and 64 bytes at most 88. The length is checked before decoding, because
 * decoding takes time that grows with the square of the length.
 */
const KEY_DIGITS_MAX = 44;
const SIGNATURE_DIGITS_MAX = 88;

/** Reads a text as an address; null if it is not an address. */
export function addressOf(text: unknown): Address | null {
  if (typeof text !== 'string' || text.length > KEY_DIGITS_MAX) return null;
  return bs58.decodeUnsafe(text)?.length === KEY_BYTES ? (text as Address) : null;
}

/** Whether a text is 64 bytes in base58, like a transaction id. */
export function isSignature(text: unknown): text is string {
  return (
    typeof text === 'string' &&
    text.length <= SIGNATURE_DIGITS_MAX &&
    bs58.decodeUnsafe(text)?.length === SIGNATURE_BYTES
  );
}

/**
 * The address of a wallet's associated token account under the SPL Token program (Associated Token Account program,
 * `get_associated_token_address`).
 */
export function tokenAccountAddress(owner: Address, mint: Address): Address {
  const seeds = [owner, TOKEN_PROGRAM, mint].map((one) => bs58.decode(one));
  const program = bs58.decode(ASSOCIATED_TOKEN_PROGRAM);
  for (let bump = 255; bump >= 0; bump -= 1) {
    const hash = createHash('sha256');
    for (const part of [...seeds, Uint8Array.of(bump), program]) hash.update(part);
    const address = bs58.encode(hash.update('ProgramDerivedAddress').digest()) as Address;
    if (isOffCurveAddress(address)) return address;
  }
  throw new Error(`no associated token account of ${owner} exists`);
}

/** The key that owns the treasury's tokens and pays the fees. */
export interface TreasuryKey {
  readonly address: Address;
  /** Signs a message. It is deterministic (RFC 8032): the same message always gives the same signature. */
  sign(message: Uint8Array): Uint8Array;
}

/** Reads a keypair of 64 bytes: a seed and its public key. Throws Error if the two do not match. */
export function treasuryKeyOf(keypair: Uint8Array): TreasuryKey {
  if (keypair.length !== 64)
    throw new Error(`the treasury's key on Solana must be a keypair of 64 bytes, not ${keypair.length}`);
  const seed = keypair.subarray(0, KEY_BYTES);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, seed]), format: 'der', type: 'pkcs8' });
  const publicKey = publicKeyBytes(key);
  if (!publicKey.equals(keypair.subarray(KEY_BYTES)))
    throw new Error(
      "the treasury's key on Solana must be a keypair: its last 32 bytes are not the public key of its first 32",
    );
  return { address: bs58.encode(publicKey) as Address, sign: (message) => Uint8Array.from(sign(null, message, key)) };
}

const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

function publicKeyBytes(key: KeyObject): Buffer {
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  return Buffer.from(x ?? '', 'base64url');
}
