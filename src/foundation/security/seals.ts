import { createHmac, timingSafeEqual, createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/* Texts that others store for the gateway: signed ones (Seals), and encrypted ones (SealedTexts). */

/**
 * Signed texts that a client stores for the gateway: `<payload>.<tag>`, both base64url. Each is bound to one account
 * and expires. The payload is not encrypted.
 */
export interface Seals {
  seal(account: string, payload: unknown): string;
  /** The payload that was sealed for this account; null if the text is of another account, expired or changed. */
  open(account: string, text: string): unknown;
}

/**
 * Secrets that all gateways of one installation share. The first one seals, and each of them opens: those behind it are
 * of former seeds of the identity. One alone has no list.
 */
export type SealSecret = Uint8Array | readonly Uint8Array[];

export const secretsOf = (secret: SealSecret): readonly Uint8Array[] =>
  secret instanceof Uint8Array ? [secret] : secret;

interface SealsOptions {
  readonly secret: SealSecret;
  readonly ttlMs: number;
  readonly now: () => number;
}

/** The most characters of a sealed text. A request carries no more. */
const TEXT_MAX = 1024 * 1024;

export function createSeals({ secret, ttlMs, now }: SealsOptions): Seals {
  const secrets = secretsOf(secret);
  const tagOf = (account: string, payload: string, key: Uint8Array = secrets[0]!) =>
    createHmac('sha256', key).update(`${account}\n${payload}`).digest();
  return {
    seal(account, value) {
      const payload = Buffer.from(JSON.stringify([now() + ttlMs, value])).toString('base64url');
      return `${payload}.${tagOf(account, payload).toString('base64url')}`;
    },
    open(account, text) {
      const dot = text.indexOf('.');
      if (dot === -1 || text.length > TEXT_MAX) return null;
      const payload = text.slice(0, dot);
      const tag = Buffer.from(text.slice(dot + 1), 'base64url');
      if (!secrets.some((key) => isSame(tag, tagOf(account, payload, key)))) return null;
      const [until, value] = JSON.parse(Buffer.from(payload, 'base64url').toString()) as [number, unknown];
      return until > now() ? value : null;
    },
  };
}

const isSame = (tag: Buffer, right: Buffer): boolean => tag.length === right.length && timingSafeEqual(tag, right);

/** Encrypts texts that are stored where others may read them, such as the database and its backups. */
export interface SealedTexts {
  /** `owner` names whose text it is. It must be the same when the text is opened. */
  seal(owner: string, text: string): string;
  /** null if the text was sealed with another secret or for another owner. */
  open(owner: string, sealed: string): string | null;
  /** The same for bytes, without an encoding that makes them longer. */
  sealBytes(owner: string, bytes: Uint8Array): Buffer;
  openBytes(owner: string, sealed: Uint8Array): Buffer | null;
  /** The same in pieces. `turn` is awaited before each, so that large bytes hold up no other work. */
  openInTurns(owner: string, sealed: Uint8Array, turn: () => Promise<void>): Promise<readonly Buffer[] | null>;
  /** The text as the first secret seals it; null if it does already, or if none of them opens it. */
  reseal(owner: string, sealed: string): string | null;
}

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Deciphered at once: it takes less than a millisecond. */
const PIECE_BYTES = 1024 * 1024;
/** Random bytes are taken for so many texts at once, because a request for 12 costs as much as one for 3,072: 2 µs. */
const IVS_AT_ONCE = 256;

/** Yields between the pieces. Its end is all pieces, which were not changed; null if they were. */
function* opening(
  secret: Uint8Array,
  owner: string,
  bytes: Uint8Array,
): Generator<undefined, readonly Buffer[] | null, undefined> {
  if (bytes.length < IV_BYTES + TAG_BYTES) return null;
  const decipher = createDecipheriv('aes-256-gcm', secret, bytes.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  })
    .setAAD(Buffer.from(owner))
    .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  const pieces: Buffer[] = [];
  for (let at = IV_BYTES + TAG_BYTES; at < bytes.length; at += PIECE_BYTES) {
    pieces.push(decipher.update(bytes.subarray(at, at + PIECE_BYTES)));
    if (at + PIECE_BYTES < bytes.length) yield;
  }
  try {
    pieces.push(decipher.final());
  } catch {
    return null;
  }
  return pieces;
}

function finished(steps: ReturnType<typeof opening>): readonly Buffer[] | null {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** AES-256-GCM. Each secret has 32 bytes. */
export function createSealedTexts(secret: SealSecret): SealedTexts {
  const secrets = secretsOf(secret);
  let ivs = Buffer.alloc(0);
  /** Bytes that no other text has. */
  const nextIv = (): Buffer => {
    if (ivs.length === 0) ivs = randomBytes(IV_BYTES * IVS_AT_ONCE);
    const iv = ivs.subarray(0, IV_BYTES);
    ivs = ivs.subarray(IV_BYTES);
    return iv;
  };
  const sealBytes = (owner: string, bytes: Uint8Array): Buffer => {
    const iv = nextIv();
    const cipher = createCipheriv('aes-256-gcm', secrets[0]!, iv).setAAD(Buffer.from(owner));
    const sealed = Buffer.concat([cipher.update(bytes), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]);
  };
  const openBytes = (owner: string, bytes: Uint8Array): Buffer | null => {
    for (const key of secrets) {
      const pieces = finished(opening(key, owner, bytes));
      if (pieces !== null) return Buffer.concat(pieces);
    }
    return null;
  };
  const openInTurns: SealedTexts['openInTurns'] = async (owner, bytes, turn) => {
    for (const key of secrets) {
      const steps = opening(key, owner, bytes);
      let step;
      do {
        await turn();
        step = steps.next();
      } while (!step.done);
      if (step.value !== null) return step.value;
    }
    return null;
  };
  return {
    seal: (owner, text) => sealBytes(owner, Buffer.from(text)).toString('base64url'),
    open: (owner, sealed) => openBytes(owner, Buffer.from(sealed, 'base64url'))?.toString() ?? null,
    sealBytes,
    openBytes,
    openInTurns,
    reseal(owner, sealed) {
      const bytes = Buffer.from(sealed, 'base64url');
      if (finished(opening(secrets[0]!, owner, bytes)) !== null) return null;
      const plain = openBytes(owner, bytes);
      return plain === null ? null : sealBytes(owner, plain).toString('base64url');
    },
  };
}
