import { createHmac, randomBytes } from 'node:crypto';
import bs58 from 'bs58';
import { describe, expect, it } from 'vitest';
import { createNonces } from '../../../../src/gateway/auth/siwx/nonces.ts';
import { requireFreshSignature } from '../../../../src/gateway/auth/full-rights.ts';
import type { Caller } from '../../../../src/server/accounts/caller.ts';
import { adHoc } from '../../../support/ad-hoc.ts';
import { ENGINES, openTestDatabase, type EngineName } from '../../test-database.ts';
import { START } from './wallets.ts';

const MINUTE = 60_000;
const COUNT = adHoc('SELECT count(*) AS n FROM used_nonces');
const secret = Buffer.alloc(32, 7);

async function world(engine: EngineName = 'sqlite') {
  const clock = { now: START };
  const database = await openTestDatabase(engine);
  const gateway = (of: Uint8Array = secret, now = () => clock.now) => createNonces({ secret: of, database, now });
  return { clock, database, gateway };
}

const walletCaller = (nonce: string | null): Caller => ({
  account: 'solana:x',
  key: null,
  wallet: { caip10: 'solana:x', nonce },
});

describe.each(ENGINES)('a nonce on %s', (engine) => {
  it('is good once, on whichever gateway', async () => {
    const { gateway } = await world(engine);
    const [first, second] = [gateway(), gateway()];
    const { nonce } = first.issue();
    expect(await second.use(nonce)).toBe(true);
    expect(await first.use(nonce)).toBe(false);
    expect(await second.use(nonce)).toBe(false);
  });

  it('is good for one of 100 that use it at once on two gateways', async () => {
    const { gateway } = await world(engine);
    const gateways = [gateway(), gateway()];
    for (let round = 0; round < 3; round += 1) {
      const { nonce } = gateways[0]!.issue();
      const results = await Promise.all(Array.from({ length: 100 }, (_, index) => gateways[index % 2]!.use(nonce)));
      expect(results.filter(Boolean)).toHaveLength(1);
    }
  });

  it('is remembered for longer than it is good, and no longer than needed', async () => {
    const { clock, database, gateway } = await world(engine);
    const nonces = gateway();
    for (let index = 0; index < 5; index += 1) await nonces.use(nonces.issue().nonce);
    clock.now += 59 * MINUTE;
    expect(await nonces.sweep()).toBe(0);
    clock.now += MINUTE;
    expect(await nonces.sweep(2)).toBe(2);
    expect(await nonces.sweep(2)).toBe(2);
    expect(await nonces.sweep(2)).toBe(1);
    expect(await database.query(COUNT)).toEqual([{ n: 0n }]);
  });
});

describe('a nonce', () => {
  it('has letters and digits only, and is another each time', async () => {
    const { gateway } = await world();
    const nonces = gateway();
    const issued = Array.from({ length: 1_000 }, () => nonces.issue());
    expect(new Set(issued.map(({ nonce }) => nonce)).size).toBe(1_000);
    for (const { nonce, expiresAt } of issued) {
      expect(nonce).toMatch(/^[A-Za-z0-9]{43,44}$/);
      expect(expiresAt).toBe(START + 10 * MINUTE);
    }
  });

  it('is written down when it is used, not when it is issued', async () => {
    const { database, gateway } = await world();
    const nonces = gateway();
    const { nonce } = nonces.issue();
    expect(await database.query(COUNT)).toEqual([{ n: 0n }]);
    await nonces.use(nonce);
    expect(await database.query(COUNT)).toEqual([{ n: 1n }]);
  });

  it('is good for ten minutes', async () => {
    const { clock, gateway } = await world();
    const nonces = gateway();
    const [one, two] = [nonces.issue(), nonces.issue()];
    clock.now = START + 10 * MINUTE;
    expect(await nonces.use(one.nonce)).toBe(true);
    clock.now += 1;
    expect(await nonces.use(two.nonce)).toBe(false);
  });

  it('of a gateway whose clock is ahead is good, but not of one that is far ahead', async () => {
    const { gateway } = await world();
    expect(await gateway().use(gateway(secret, () => START + MINUTE).issue().nonce)).toBe(true);
    expect(await gateway().use(gateway(secret, () => START + MINUTE + 1).issue().nonce)).toBe(false);
  });

  it('of another seed, made up or changed is refused and leaves nothing behind', async () => {
    const { database, gateway } = await world();
    const nonces = gateway();
    const { nonce } = nonces.issue();
    const foreign = gateway(Buffer.alloc(32, 8)).issue().nonce;
    const claim = Buffer.from(bs58.decode(nonce)).subarray(0, 16);
    const later = Buffer.from(claim);
    later.writeUIntBE(START + 1, 0, 6);
    const forged = [
      bs58.encode(Buffer.concat([later, Buffer.from(bs58.decode(nonce)).subarray(16)])),
      bs58.encode(Buffer.concat([claim, createHmac('sha256', 'guessed').update(claim).digest().subarray(0, 16)])),
      bs58.encode(claim),
    ];
    const changed = Array.from(
      nonce,
      (letter, at) => nonce.slice(0, at) + (letter === 'a' ? 'b' : 'a') + nonce.slice(at + 1),
    );
    const others = [
      foreign,
      ...forged,
      ...changed,
      `${nonce}1`,
      `1${nonce}`,
      nonce.slice(1),
      nonce.toLowerCase(),
      randomBytes(16).toString('hex'),
      'abcdefgh',
      '',
      '0'.repeat(44),
      'a'.repeat(5_000),
    ];
    for (const other of others) expect(await nonces.use(other), other.slice(0, 60)).toBe(false);
    expect(await database.query(COUNT)).toEqual([{ n: 0n }]);
    expect(await nonces.use(nonce)).toBe(true);
  });
});

describe('what is sensitive', () => {
  it('needs a nonce of ours that nobody has used, and uses it up', async () => {
    const { gateway } = await world();
    const nonces = gateway();
    const { nonce } = nonces.issue();
    const refused = {
      code: 'unauthorized',
      headers: { 'www-authenticate': 'SIWx, Bearer' },
      message: expect.stringContaining('/api/v1/auth/nonce'),
    };
    await expect(requireFreshSignature(walletCaller(null), nonces)).rejects.toMatchObject(refused);
    await expect(requireFreshSignature(walletCaller('a1b2c3d4e5f67890'), nonces)).rejects.toMatchObject(refused);
    await requireFreshSignature(walletCaller(nonce), nonces);
    await expect(requireFreshSignature(walletCaller(nonce), nonces)).rejects.toMatchObject(refused);
  });

  it('needs none of a caller with an API key', async () => {
    const key = { hash: 'h', label: 'l', development: false, access: null };
    await requireFreshSignature({ account: 'a', key, wallet: null }, { use: () => Promise.reject(new Error('asked')) });
  });
});
