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
/** Assertions that wallets add to protect their owners. It holds nothing and can sign for nobody. */
export const LIGHTHOUSE_PROGRAM = 'L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95' as Address;

/** Of the token: its smallest unit is 1 micro-USD. */
export const DECIMALS = 6;
export const SIGNATURE_BYTES = 64;
const KEY_BYTES = 32;
/**
 * 32 bytes are at most 44 base58 digits, 64 bytes at most 88: checked before decoding, whose time grows with the
 * square of the length.
 */
const KEY_DIGITS_MAX = 44;
const SIGNATURE_DIGITS_MAX = 88;

/** A text as an address; null where it is not one. */
export function addressOf(text: unknown): Address | null {
  if (typeof text !== 'string' || text.length > KEY_DIGITS_MAX) return null;
  return bs58.decodeUnsafe(text)?.length === KEY_BYTES ? (text as Address) : null;
}

/** Whether a text is 64 bytes in base58, as ids of transactions are. */
export function isSignature(text: unknown): text is string {
  return (
    typeof text === 'string' &&
    text.length <= SIGNATURE_DIGITS_MAX &&
    bs58.decodeUnsafe(text)?.length === SIGNATURE_BYTES
  );
}

/**
 * The associated token account of a wallet, under the SPL Token program (Associated Token Account program,
 * `get_associated_token_address`).
 */
export function tokenAccountAddress(owner: Address, mint: Address): Address {
  const seeds = [owner, TOKEN_PROGRAM, mint].map((one) => bs58.decode(one));
  const program = bs58.decode(ASSOCIATED_TOKEN_PROGRAM);
  for (let bump = 255; bump >= 0; bump -= 1) {
    const hash = createHash('sha256');
    for (const part of [...seeds, Uint8Array.of(bump), program]) hash.update(part);
    const found = bs58.encode(hash.update('ProgramDerivedAddress').digest()) as Address;
    if (isOffCurveAddress(found)) return found;
  }
  throw new Error(`no associated token account of ${owner} exists`);
}

/** The key that owns what the treasury holds and pays the fees. */
export interface TreasuryKey {
  readonly address: Address;
  /** Deterministic (RFC 8032): the same message always gives the same signature. */
  sign(message: Uint8Array): Uint8Array;
}

/** Throws where the 64 bytes are no keypair: a seed and the public key that belongs to it. */
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
