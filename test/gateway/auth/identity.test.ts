import { createHash, createPublicKey, sign, verify } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import bs58 from 'bs58';
import { beforeEach, describe, expect, test } from 'vitest';
import { createIdentity, IdentityError } from '../../../src/gateway/auth/identity.ts';

const SEED = '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f';

let dataDir: string;
beforeEach(() => {
  dataDir = join(mkdtempSync(join(tmpdir(), 'tollgate-identity-')), 'data');
});

describe('from a seed', () => {
  test('the same names have the same ids for ever', () => {
    const identity = createIdentity({ seed: SEED });
    // Written down once: another derivation would give every provider a new, empty earnings account.
    expect(identity.providerId('Acme')).toBe('9HoUKTnXXLYnNqvjRqf5Hhor8SArEoTuYkSgkqYdCgAd');
    expect(identity.receiptKey.id).toBe('7nN5_YiUUlDmah7M_Viqi0CB-J0in-UsnG_rNfqQ7lI');
    expect(createIdentity({ seed: SEED }).providerId('Acme')).toBe(identity.providerId('Acme'));
  });

  test('ids are public keys, one for each name and seed', () => {
    const identity = createIdentity({ seed: SEED });
    const ids = ['Acme', 'acme', 'Other'].map((name) => identity.providerId(name));
    ids.push(createIdentity({ seed: SEED.replace('00', '01') }).providerId('Acme'));
    expect(new Set(ids).size).toBe(4);
    for (const id of ids) expect(bs58.decode(id)).toHaveLength(32);
  });

  test('secrets are one for each purpose and seed, the same for ever, and none of the other keys', () => {
    const identity = createIdentity({ seed: SEED });
    expect(identity.secret('a').toString('hex')).toBe(
      '3dc2ee57d9f0f07d922d056e8e107ce4ca79b83e40e5ec02e7419a5d68a5834f',
    );
    const others = [
      identity.secret('b'),
      identity.secret('receipts'),
      identity.secret(''),
      createIdentity({ seed: SEED.replace('00', '01') }).secret('a'),
    ];
    expect(new Set([identity.secret('a'), ...others].map((secret) => secret.toString('hex'))).size).toBe(5);
    const receipts = identity.receiptKey.privateKey.export({ format: 'jwk' }).d!;
    expect(others.map((secret) => secret.toString('base64url'))).not.toContain(receipts);
    for (const secret of others) expect(secret).toHaveLength(32);
  });

  test('receipts verify with the published key', () => {
    const { receiptKey } = createIdentity({ seed: SEED });
    const message = Buffer.from('a receipt');
    const publicKey = createPublicKey({ key: { ...receiptKey.jwk }, format: 'jwk' });
    expect(verify(null, message, publicKey, sign(null, message, receiptKey.privateKey))).toBe(true);
    const { crv, kty, x } = receiptKey.jwk;
    expect(receiptKey.id).toBe(createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url'));
    expect(receiptKey.jwk.kid).toBe(receiptKey.id);
    expect(receiptKey.jwk).not.toHaveProperty('d');
  });

  test.each(['', '00', 'zz'.repeat(32), SEED.slice(1)])('%j is refused', (seed) => {
    expect(() => createIdentity({ seed })).toThrow(IdentityError);
  });
});

describe('from a data directory', () => {
  const file = () => join(dataDir, 'identity.json');

  test('is made at the first start, for its owner only, and read from then on', () => {
    const first = createIdentity({ dataDir });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(readdirSync(dataDir)).toEqual(['identity.json']);
    const text = readFileSync(file(), 'utf8');
    expect(createIdentity({ dataDir }).providerId('Acme')).toBe(first.providerId('Acme'));
    expect(readFileSync(file(), 'utf8')).toBe(text);
  });

  test('is another one in another directory', () => {
    const other = mkdtempSync(join(tmpdir(), 'tollgate-identity-'));
    expect(createIdentity({ dataDir }).receiptKey.id).not.toBe(createIdentity({ dataDir: other }).receiptKey.id);
  });

  test.each([0o640, 0o604, 0o660, 0o602])('is refused with mode %o, with the command that mends it', (mode) => {
    createIdentity({ dataDir });
    chmodSync(file(), mode);
    expect(() => createIdentity({ dataDir })).toThrow(`chmod 600 ${file()}`);
    chmodSync(file(), 0o600);
    expect(() => createIdentity({ dataDir })).not.toThrow();
  });

  test.each(['', '{', '[]', 'null', '{"seed":1}', '{"seed":"00"}', 'x'.repeat(100_000)])(
    'damaged as %j is refused and not replaced',
    (text) => {
      createIdentity({ dataDir });
      writeFileSync(file(), text);
      expect(() => createIdentity({ dataDir })).toThrow(IdentityError);
      expect(readFileSync(file(), 'utf8')).toBe(text);
    },
  );

  test('is refused where a directory stands in its place', () => {
    mkdirSync(file(), { recursive: true });
    expect(() => createIdentity({ dataDir })).toThrow(IdentityError);
  });

  test('leaves no draft behind when it cannot be made', () => {
    writeFileSync(dataDir, 'a file in the place of the directory');
    expect(() => createIdentity({ dataDir })).toThrow();
    expect(existsSync(file())).toBe(false);
  });
});
