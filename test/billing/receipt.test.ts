import { createPrivateKey, createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createReceiptSigner } from '#billing/compose';
import type { Receipt } from '#billing';
import { createReceiptChecker, type Jwk } from '../../src/billing/receipt.ts';

const receipt: Receipt = {
  id: 'gen-1',
  account: 'eip155:0xabc',
  provider: 'provider-1',
  primitive: 'chat',
  price: 'price-1',
  lock: 2n ** 60n,
  usage: '{"prompt":12,"completion":34}',
  charged: 46n,
  fee: 4n,
  time: 1_700_000_000_000,
};

/** As somebody would who has the receipt and the key set, and no tollgate. */
function verifyReceipt(jws: string, keys: readonly Jwk[]): Record<string, unknown> | null {
  const [header, payload, signature] = jws.split('.') as [string, string, string];
  const { kid, alg } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string; alg: string };
  const jwk = keys.find((key) => key.kid === kid);
  if (!jwk || alg !== 'EdDSA') return null;
  const key = createPublicKey({ key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, format: 'jwk' });
  if (!verify(null, Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))) return null;
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
}

describe('a receipt', () => {
  const signer = createReceiptSigner(generateKeyPairSync('ed25519').privateKey);

  test('is verified offline with the published key, and says everything', () => {
    expect(verifyReceipt(signer.sign(receipt), signer.jwks().keys)).toEqual({
      ...receipt,
      lock: '1152921504606846976',
      charged: '46',
      fee: '4',
      usage: { prompt: 12, completion: 34 },
    });
  });

  test('of a call without tags is the same text as before there were tags', () => {
    const [, payload] = signer.sign(receipt).split('.') as [string, string];
    expect(Buffer.from(payload, 'base64url').toString()).toBe(
      '{"id":"gen-1","account":"eip155:0xabc","provider":"provider-1","primitive":"chat","price":"price-1","lock":"1152921504606846976","usage":{"prompt":12,"completion":34},"charged":"46","fee":"4","time":1700000000000}',
    );
    expect(signer.sign({ ...receipt, tags: undefined })).toBe(signer.sign(receipt));
  });

  test('says the tags of its call, and another tag makes it none', () => {
    const jws = signer.sign({ ...receipt, tags: { team: 'search' } });
    expect(verifyReceipt(jws, signer.jwks().keys)).toMatchObject({ tags: { team: 'search' } });
    const [header, payload, signature] = jws.split('.') as [string, string, string];
    const forged = Buffer.from(Buffer.from(payload, 'base64url').toString().replace('search', 'others'));
    expect(verifyReceipt(`${header}.${forged.toString('base64url')}.${signature}`, signer.jwks().keys)).toBeNull();
  });

  test('with one byte changed is none', () => {
    const [header, payload, signature] = signer.sign(receipt).split('.') as [string, string, string];
    const forged = Buffer.from(Buffer.from(payload, 'base64url').toString().replace('"46"', '"45"')).toString(
      'base64url',
    );
    expect(forged).not.toBe(payload);
    expect(verifyReceipt(`${header}.${forged}.${signature}`, signer.jwks().keys)).toBeNull();
  });

  test('of another key is none', () => {
    const other = createReceiptSigner(generateKeyPairSync('ed25519').privateKey);
    expect(verifyReceipt(other.sign(receipt), signer.jwks().keys)).toBeNull();
    expect(other.jwks().keys[0]!.kid).not.toBe(signer.jwks().keys[0]!.kid);
  });

  test('is no seal of an archive, though the same key signs both', () => {
    const checker = createReceiptChecker(signer.jwks().keys[0]!);
    expect(checker.archiveClaims(signer.signArchive({ records: 2 }))).toEqual({ records: 2 });
    expect(checker.archiveClaims(signer.sign(receipt))).toBeNull();
  });

  test('the key id is the RFC 7638 thumbprint', () => {
    // The key and its thumbprint of RFC 8037, appendix A.
    const jwk = {
      kty: 'OKP',
      crv: 'Ed25519',
      x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
      d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
    };
    const { jwks } = createReceiptSigner(createPrivateKey({ key: jwk, format: 'jwk' }));
    expect(jwks().keys[0]!.kid).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
  });

  test('no other kind of key signs', () => {
    expect(() => createReceiptSigner(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)).toThrow(TypeError);
    expect(() => createReceiptSigner(generateKeyPairSync('ed25519').publicKey)).toThrow(TypeError);
  });
});
