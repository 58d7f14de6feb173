import { createHash, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import type { MicroUsd } from './prices/money.ts';

/**
 * The charge of a paid call, with all that is needed to recompute it from the price version. Amounts are in micro-USD,
 * and `time` is in epoch milliseconds.
 */
export interface Receipt {
  /** Call id = lock id = generation id. */
  readonly id: string;
  /** CAIP-10, as `/generation` shows it. */
  readonly account: string;
  readonly provider: string;
  readonly primitive?: string;
  /** Id of the call under which this one was made. */
  readonly parent?: string;
  /** The consumer's names of the call. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  readonly price: string;
  /** The locked amount. */
  readonly lock: MicroUsd;
  /** Metered usage as JSON text, as on the generation. */
  readonly usage: string;
  readonly charged: MicroUsd;
  readonly fee: MicroUsd;
  readonly time: number;
}

/** A public key as JSON Web Key (RFC 7517, RFC 8037). */
export interface Jwk {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
  readonly kid: string;
  readonly alg: 'EdDSA';
  readonly use: 'sig';
}

export interface ReceiptSigner {
  /**
   * The receipt as compact JWS (RFC 7515, EdDSA), verifiable offline with the key of `jwks`. Amounts are decimal
   * texts.
   */
  sign(receipt: Receipt): string;
  /** The claims of an archive of the ledger as compact JWS. Its `typ` tells it from a receipt. */
  signArchive(claims: Readonly<Record<string, unknown>>): string;
  /** The document for `/.well-known/jwks.json`. */
  jwks(): { readonly keys: readonly Jwk[] };
}

/**
 * Signs receipts with the gateway's Ed25519 private key. The key id is the RFC 7638 thumbprint. Throws TypeError
 * for a key of another kind.
 */
export function createReceiptSigner(privateKey: KeyObject): ReceiptSigner {
  if (privateKey.type !== 'private' || privateKey.asymmetricKeyType !== 'ed25519')
    throw new TypeError('Receipts are signed with an Ed25519 private key');
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  const kid = thumbprintOf(x!);
  const jwk: Jwk = { kty: 'OKP', crv: 'Ed25519', x: x!, kid, alg: 'EdDSA', use: 'sig' };
  const signed = (text: string) => `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`;
  return {
    sign: (receipt) => signed(receiptText(receipt, kid)),
    signArchive: (claims) => signed(`${encode({ alg: 'EdDSA', kid, typ: ARCHIVE_TYPE })}.${encode(claims)}`),
    jwks: () => ({ keys: [jwk] }),
  };
}

const ARCHIVE_TYPE = 'tollgate-archive+jwt';

/** The key id of an Ed25519 key: its RFC 7638 thumbprint. */
const thumbprintOf = (x: string): string =>
  createHash('sha256')
    .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url');

/** The signed text of a receipt: header and payload. A receipt is this text, a dot and its signature. */
export function receiptText(receipt: Receipt, kid: string): string {
  const { id, account, provider, primitive, parent, tags, price, lock, usage, charged, fee, time } = receipt;
  const payload = {
    id,
    account,
    provider,
    ...(primitive === undefined ? {} : { primitive }),
    ...(parent === undefined ? {} : { parent }),
    ...(tags === undefined ? {} : { tags }),
    price,
    lock: `${lock}`,
    usage: JSON.parse(usage) as unknown,
    charged: `${charged}`,
    fee: `${fee}`,
    time,
  };
  return `${encode({ alg: 'EdDSA', kid, typ: 'tollgate-receipt+jwt' })}.${encode(payload)}`;
}

/** The tags of a call that is recorded with this detail of its lock; undefined without any. */
export const tagsOfLock = (lockDetail: string): Receipt['tags'] =>
  lockDetail.includes('"tags":{') ? (JSON.parse(lockDetail) as Pick<Receipt, 'tags'>).tags : undefined;

export interface ReceiptChecker {
  readonly kid: string;
  isReceipt(receipt: Receipt, signature: string): boolean;
  /** The claims of an archive; null if the key has not signed them. */
  archiveClaims(jws: string): Readonly<Record<string, unknown>> | null;
}

/** Throws TypeError for what is not a public Ed25519 key. */
export function createReceiptChecker({ x }: Pick<Jwk, 'x'>): ReceiptChecker {
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const kid = thumbprintOf(x);
  const isSigned = (text: string, signature: string) =>
    verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));
  return {
    kid,
    isReceipt: (receipt, signature) => isSigned(receiptText(receipt, kid), signature),
    archiveClaims(jws) {
      const [header, payload, signature, ...more] = jws.split('.');
      if (header === undefined || payload === undefined || signature === undefined || more.length > 0) return null;
      if (!isSigned(`${header}.${payload}`, signature)) return null;
      const { typ } = decode(header);
      return typ === ARCHIVE_TYPE ? decode(payload) : null;
    },
  };
}

const decode = (part: string) =>
  Object(JSON.parse(Buffer.from(part, 'base64url').toString())) as Readonly<Record<string, unknown>>;

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
