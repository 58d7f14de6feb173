import { hash, randomBytes } from 'node:crypto';
import bs58 from 'bs58';

/** A key is for calls of a real account, for calls of the development account, or for the admin API. */
export type KeyKind = 'live' | 'development' | 'admin';

const PREFIXES = { live: 'svc-sk-v2-', development: 'svc-sk-dev-', admin: 'svc-admin-' } as const satisfies Record<
  KeyKind,
  string
>;
const KINDS = Object.keys(PREFIXES) as KeyKind[];

const SECRET_BYTES = 32;
const CHECKSUM_BYTES = 4;
/**
 * 36 bytes are 36 to 50 base58 digits. The length is checked first, because the time of decoding grows with its square.
 */
const DIGITS_MAX = 50;

/** A key's text, which is shown once, and the hash that identifies it everywhere else. */
interface NewKey {
  readonly text: string;
  readonly hash: string;
}

interface ParsedKey {
  readonly kind: KeyKind;
  readonly hash: string;
}

/**
 * A new key. Its text is the prefix, then base58 of 32 random bytes and a checksum. The checksum has 4 bytes and covers
 * the prefix and the random bytes.
 */
export function createKey(kind: KeyKind, random: (bytes: number) => Uint8Array = randomBytes): NewKey {
  const secret = random(SECRET_BYTES);
  const bytes = Buffer.concat([secret, checksum(PREFIXES[kind], secret)]);
  const text = PREFIXES[kind] + bs58.encode(bytes);
  return { text, hash: hashKey(text) };
}

/**
 * The kind and hash of a well-formed key. null for any other text. The checksum detects a mistyped key without a
 * lookup.
 */
export function parseKey(text: string): ParsedKey | null {
  const kind = kindOf(text);
  if (kind === null) return null;
  const prefix = PREFIXES[kind];
  if (text.length - prefix.length > DIGITS_MAX) return null;
  const bytes = bs58.decodeUnsafe(text.slice(prefix.length));
  if (bytes?.length !== SECRET_BYTES + CHECKSUM_BYTES) return null;
  if (!checksum(prefix, bytes.subarray(0, SECRET_BYTES)).equals(bytes.subarray(SECRET_BYTES))) return null;
  return { kind, hash: hashKey(text) };
}

/** The SHA-256 of the whole key in hex. It is stored, cached and shown instead of the key. */
export function hashKey(text: string): string {
  return hash('sha256', text);
}

/** The kind that a text claims by its prefix. The rest is not checked. null for a text without a known prefix. */
export function kindOf(text: string): KeyKind | null {
  for (const kind of KINDS) if (text.startsWith(PREFIXES[kind])) return kind;
  return null;
}

function checksum(prefix: string, secret: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([Buffer.from(prefix), secret]), 'buffer').subarray(0, CHECKSUM_BYTES);
}
