import { createHash, createPublicKey, sign, type KeyObject } from 'node:crypto';
import type { MicroUsd } from './money.ts';

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
  /** Id of the price version. */
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
  const kid = createHash('sha256')
    .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url');
  const jwk: Jwk = { kty: 'OKP', crv: 'Ed25519', x: x!, kid, alg: 'EdDSA', use: 'sig' };
  const header = encode({ alg: 'EdDSA', kid, typ: 'tollgate-receipt+jwt' });
  return {
    sign({ id, account, provider, primitive, parent, price, lock, usage, charged, fee, time }) {
      const payload = encode({
        id,
        account,
        provider,
        ...(primitive === undefined ? {} : { primitive }),
        ...(parent === undefined ? {} : { parent }),
        price,
        lock: `${lock}`,
        usage: JSON.parse(usage) as unknown,
        charged: `${charged}`,
        fee: `${fee}`,
        time,
      });
      const signed = `${header}.${payload}`;
      return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`;
    },
    jwks: () => ({ keys: [jwk] }),
  };
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
