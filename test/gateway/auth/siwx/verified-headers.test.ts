import { describe, expect, it } from 'vitest';
import { createVerified } from '../../../../src/gateway/auth/siwx/verified.ts';
import type { Caller } from '../../../../src/server/accounts/caller.ts';
import { openSignIn } from './sign-in-world.ts';
import { evmWallet, headerFor, iso, solanaWallet, START } from './wallets.ts';

const caller = (account: string): Caller => ({ account, key: null, wallet: { caip10: account, nonce: null } });

describe('a header that was verified', () => {
  it('is known until its message has expired, and not before it is valid', async () => {
    const { clock, signIn, enter } = await openSignIn();
    const header = await headerFor(solanaWallet(), { expirationTime: iso(START + 60_000) });
    expect(signIn.known(header)).toBeNull();
    const first = await enter(header);
    expect(signIn.known(header)).toBe(first);
    clock.now = START + 90_000;
    expect(signIn.known(header)).toBe(first);
    clock.now += 1;
    expect(signIn.known(header)).toBeNull();
    await expect(enter(header)).rejects.toThrow('expired');
  });

  it('is not known when the clock was set back before its begin', async () => {
    const { clock, signIn, enter } = await openSignIn();
    const header = await headerFor(solanaWallet());
    await enter(header);
    clock.now = START - 30_001;
    expect(signIn.known(header)).toBeNull();
    await expect(enter(header)).rejects.toThrow('future');
  });

  it('stands for itself alone: one bit more, and it is verified anew', async () => {
    const { signIn, enter } = await openSignIn();
    const header = await headerFor(evmWallet());
    await enter(header);
    for (const other of [`${header}=`, header.slice(0, -1), header.toLowerCase(), ` ${header}`])
      expect(signIn.known(other)).toBeNull();
  });

  it('is verified once for many requests that bring it at once', async () => {
    const { signIn } = await openSignIn({ failuresPerMinute: 1 });
    const header = await headerFor(evmWallet());
    const promises = Array.from({ length: 50 }, () => signIn.verify(header, '192.0.2.1'));
    expect(new Set(promises).size).toBe(1);
    expect(new Set(await Promise.all(promises)).size).toBe(1);
  });

  it('that failed is not known', async () => {
    const { signIn, enter } = await openSignIn();
    const header = await headerFor(solanaWallet(), { domain: 'evil.example' });
    await expect(enter(header)).rejects.toThrow('domain');
    expect(signIn.known(header)).toBeNull();
  });
});

describe('what is remembered', () => {
  const forEver = { from: 0, until: Number.MAX_SAFE_INTEGER };

  it('is bounded by count: the first goes', () => {
    const verified = createVerified({ countMax: 3, bytesMax: 1_000 });
    for (const header of ['a', 'b', 'c', 'd']) verified.put(header, caller(header), forEver);
    expect(['a', 'b', 'c', 'd'].map((header) => verified.get(header, 1)?.account)).toEqual([undefined, 'b', 'c', 'd']);
  });

  it('is bounded by bytes, also when headers are put again or expire', () => {
    const verified = createVerified({ countMax: 1_000, bytesMax: 10 });
    for (let round = 0; round < 5; round += 1) verified.put('aaaa', caller('a'), forEver);
    verified.put('bbbb', caller('b'), { from: 0, until: 5 });
    expect(verified.get('bbbb', 6)).toBeNull();
    verified.put('cccc', caller('c'), forEver);
    expect(verified.get('aaaa', 6)).not.toBeNull();
    verified.put('dddd', caller('d'), forEver);
    expect(verified.get('aaaa', 6)).toBeNull();
    expect(verified.get('cccc', 6)).not.toBeNull();
    verified.put('e'.repeat(11), caller('e'), forEver);
    for (const header of ['cccc', 'dddd', 'e'.repeat(11)]) expect(verified.get(header, 6)).toBeNull();
  });
});
