import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import bs58 from 'bs58';
import { loadStatement, type Database } from '#store';

interface IssuedNonce {
  /** 43 or 44 letters and digits. */
  readonly nonce: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/**
 * Nonces of sign-in messages for sensitive requests. Each can be used once, at any gateway with the same seed and
 * database.
 */
export interface Nonces {
  /** A new nonce. It is not stored, because it contains its time and an authentication code. */
  issue(): IssuedNonce;
  /**
   * Marks a nonce as used, atomically. False for a nonce that was used, is too old, or was not issued by this
   * installation. Rejects with the database's error.
   */
  use(nonce: string): Promise<boolean>;
  /** Deletes at most `limit` used nonces that are too old to be accepted again. Resolves with their number. */
  sweep(limit?: number): Promise<number>;
}

interface NoncesOptions {
  /** 32 bytes that the gateways share. */
  readonly secret: Uint8Array;
  readonly database: Pick<Database, 'query'>;
  readonly now: () => number;
  readonly random?: (bytes: number) => Uint8Array;
}

const TTL_MS = 10 * 60_000;
/**
 * The largest accepted difference between the clocks of two gateways. Used nonces are stored much longer than this time
 * and TTL_MS together.
 */
const SKEW_MS = 60_000;
const KEPT_MS = 60 * 60_000;

const TIME_BYTES = 6;
const RANDOM_BYTES = 10;
const CODE_BYTES = 16;
const CLAIM_BYTES = TIME_BYTES + RANDOM_BYTES;
/** The longest base58 of 32 bytes. The length is checked first, because the time of decoding grows with its square. */
const DIGITS_MAX = 44;

const USE = loadStatement(import.meta.url, './sql/use-nonce.sql');
const SWEEP = loadStatement(import.meta.url, './sql/sweep-nonces.sql');

export function createNonces({ secret, database, now, random = randomBytes }: NoncesOptions): Nonces {
  const codeOf = (claim: Uint8Array) => createHmac('sha256', secret).update(claim).digest().subarray(0, CODE_BYTES);

  /** The time at which a nonce was issued. null for a text that is not a nonce of this installation. */
  const issuedAt = (nonce: string): number | null => {
    if (nonce.length > DIGITS_MAX) return null;
    const bytes = bs58.decodeUnsafe(nonce);
    if (bytes?.length !== CLAIM_BYTES + CODE_BYTES) return null;
    const claim = Buffer.from(bytes.subarray(0, CLAIM_BYTES));
    return timingSafeEqual(codeOf(claim), bytes.subarray(CLAIM_BYTES)) ? claim.readUIntBE(0, TIME_BYTES) : null;
  };

  return {
    issue() {
      const at = now();
      const claim = Buffer.alloc(CLAIM_BYTES);
      claim.writeUIntBE(at, 0, TIME_BYTES);
      claim.set(random(RANDOM_BYTES), TIME_BYTES);
      return { nonce: bs58.encode(Buffer.concat([claim, codeOf(claim)])), expiresAt: at + TTL_MS };
    },

    async use(nonce) {
      const issued = issuedAt(nonce);
      const at = now();
      if (issued === null || at > issued + TTL_MS || at < issued - SKEW_MS) return false;
      return (await database.query(USE, [nonce, at + KEPT_MS])).length > 0;
    },

    async sweep(limit = 1_000) {
      return (await database.query(SWEEP, [now(), limit])).length;
    },
  };
}
