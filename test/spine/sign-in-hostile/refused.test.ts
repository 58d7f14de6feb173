import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { encodeEnvelope, evmWallet, presign, solanaWallet } from '../../support/wallets.ts';
import { hostileEnvelopes } from './envelopes.ts';
import { hostileFields } from './fields.ts';
import { hostileMessages } from './messages.ts';
import {
  hostileEvmSignatures,
  hostileSolanaSignatures,
  malleatedIsRecovered,
  smallOrderForgeries,
} from './signatures.ts';
import { startWorld, type World } from './world.ts';

// Every way that a sign-in can be none. Each is answered with 401 at once, and does not keep those out who are right.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';

// All messages are made at one moment, and it is that moment at the gateway: what is wrong with a time stays so, and
// nothing else becomes wrong, however long the run takes.
const MADE_AT = Date.now();

let world: World;
beforeAll(async () => {
  world = await startWorld({ now: () => MADE_AT });
});
afterAll(() => world.stop());

vi.setSystemTime(MADE_AT);
// The same on every run.
const solana = solanaWallet(Buffer.alloc(32, 1));
const evm = evmWallet(Buffer.alloc(32, 1));
const vectors: Readonly<Record<string, readonly (readonly [name: string, value: string])[]>> = {
  'a message of a Solana wallet': await Promise.all(
    hostileMessages(solana).map(async ([name, text]) => [name, encodeEnvelope(await presign(solana, text))] as const),
  ),
  'a message of an EVM wallet': await Promise.all(
    hostileMessages(evm).map(async ([name, text]) => [name, encodeEnvelope(await presign(evm, text))] as const),
  ),
  'a signature of a Solana wallet': (await hostileSolanaSignatures()).map(
    ([name, envelope]) => [name, encodeEnvelope(envelope)] as const,
  ),
  'a signature of an EVM wallet': (await hostileEvmSignatures()).map(
    ([name, envelope]) => [name, encodeEnvelope(envelope)] as const,
  ),
  'an envelope': await hostileEnvelopes(solana),
  'flat fields of a Solana wallet': await hostileFields(solana, evm),
  'flat fields of an EVM wallet': await hostileFields(evm, solana),
};
vi.useRealTimers();

/** Texts of both wallets are read by the same rules: by day an EVM wallet sends a quarter of them as well. */
const sentBy = (group: string) =>
  vectors[group]!.filter(
    (_, index) => DEEP || index % 4 === 0 || !/^(?:a message|flat fields) of an EVM wallet$/.test(group),
  );

describe.each(Object.keys(vectors))('%s is refused', (group) => {
  it.each(sentBy(group))('%s', (_name, value) => world.refuses({ 'sign-in-with-x': value }));
});

describe('the vectors', () => {
  it('are more than 300 by what is wrong with them, and no two are the same', () => {
    const names = new Set(
      Object.entries(vectors).flatMap(([group, list]) =>
        list.map(([name]) => `${group.replace(/ of an? .*/, '')} ${name}`),
      ),
    );

    expect(names.size).toBeGreaterThan(300);
    for (const [group, list] of Object.entries(vectors)) {
      const twice = list.filter(
        ([name, value], at) => list.findIndex((other) => other[0] === name || other[1] === value) !== at,
      );
      expect(
        twice.map(([name]) => name),
        group,
      ).toEqual([]);
    }
  });

  it('are taken for good by verifiers that are not careful', async () => {
    const forgeries = smallOrderForgeries();
    expect(forgeries).toHaveLength(14);
    expect(forgeries.filter(({ accepted }) => accepted).length).toBe(14);
    expect(await malleatedIsRecovered()).toBe(true);
  });
});
