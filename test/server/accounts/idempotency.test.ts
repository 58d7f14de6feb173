import * as fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DatabaseError, type Database } from '#store';
import { createLedger } from '#billing/compose';
import { toHttpError } from '../../../src/server/http/error-table.ts';
import { createIdempotency, idempotencyError, parseIdempotencyKey } from '../../../src/gateway/call/idempotency.ts';
import { ENGINES, openTestDatabase, type EngineName } from '../../gateway/test-database.ts';
import { anyCharacter } from '../../support/any-character.ts';

const HOUR_MS = 3_600_000;

async function world(engine: EngineName) {
  const clock = { now: 1_700_000_000_000 };
  const database = await openTestDatabase(engine);
  let isAway = false;
  const away = (now: boolean) => void (isAway = now);
  const gone = () => Promise.reject(new DatabaseError('away', { code: 'connection', unavailable: true }));
  const query: Database['query'] = (...args) => (isAway ? gone() : database.query(...args));
  const batch: Database['batch'] = (...args) => (isAway ? gone() : database.batch(...args));
  const idempotency = createIdempotency(
    { ...database, query, batch },
    { now: () => clock.now, ttlMs: 24 * HOUR_MS, runningTtlMs: HOUR_MS },
  );
  const use = { account: 'tollgate:local:alice', key: 'order 7', callId: 'gen-1' };
  /** The call `id` ends, and costs so much. */
  const charge = async (id: string, charged = 5n) => {
    const ledger = await createLedger({ database });
    onTestFinished(() => ledger.close());
    await ledger.transfer({ id: 'credit', from: 'treasury:test', to: `escrow:${use.account}`, amount: 10n, memo: '' });
    await ledger.lock({
      id,
      account: use.account,
      amount: 5n,
      prices: ['p'],
      expiresAt: Date.now() + HOUR_MS,
      detail: '{}',
    });
    await ledger.settle({
      id,
      price: 'p',
      provider: 'x',
      charge: charged,
      draw: false,
      feeBps: 0,
      usage: '{}',
      detail: '{}',
    });
  };
  return { clock, idempotency, use, charge, away };
}

describe.each(ENGINES)('idempotency keys on %s', (engine) => {
  it('stand for the reply of their first call, byte for byte', async () => {
    const { idempotency, use } = await world(engine);
    expect(await idempotency.begin({ ...use, bodyHash: 'a' })).toEqual({ kind: 'new' });
    const body = Uint8Array.from({ length: 256 }, (_, n) => n);
    expect(
      await idempotency.finish(use, { status: 402, headers: { 'content-type': 'x/y', 'x-note': '"ü"' }, body }, true),
    ).toBe(true);
    const again = await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' });
    expect(again).toEqual({
      kind: 'replay',
      status: 402,
      headers: { 'content-type': 'x/y', 'x-note': '"ü"' },
      body: Buffer.from(body),
    });
  });

  it('conflict with another body, finished or not', async () => {
    const { idempotency, use } = await world(engine);
    await idempotency.begin({ ...use, bodyHash: 'a' });
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'b' })).toEqual({ kind: 'conflict' });
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' })).toEqual({
      kind: 'running',
      callId: 'gen-1',
    });
    await idempotency.finish(use, { status: 200, headers: {}, body: new Uint8Array() }, true);
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'b' })).toEqual({ kind: 'conflict' });
  });

  it('are each account’s own', async () => {
    const { idempotency, use } = await world(engine);
    await idempotency.begin({ ...use, bodyHash: 'a' });
    expect(await idempotency.begin({ ...use, account: 'tollgate:local:bob', bodyHash: 'b' })).toEqual({ kind: 'new' });
  });

  it('let exactly one of many calls at once run', async () => {
    const { idempotency, use } = await world(engine);
    const beginnings = await Promise.all(
      Array.from({ length: 50 }, (_, n) => idempotency.begin({ ...use, callId: `gen-${n}`, bodyHash: 'a' })),
    );
    expect(beginnings.filter(({ kind }) => kind === 'new').length).toBe(1);
    expect(beginnings.filter(({ kind }) => kind === 'running').length).toBe(49);
  });

  it('are free again when their call was abandoned, but not by another call', async () => {
    const { idempotency, use } = await world(engine);
    await idempotency.begin({ ...use, bodyHash: 'a' });
    await idempotency.abandon({ ...use, callId: 'gen-2' });
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' })).toEqual({
      kind: 'running',
      callId: 'gen-1',
    });
    await idempotency.abandon(use);
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'b' })).toEqual({ kind: 'new' });
  });

  it('are never abandoned once they are done', async () => {
    const { idempotency, use } = await world(engine);
    await idempotency.begin({ ...use, bodyHash: 'a' });
    await idempotency.finish(use, { status: 200, headers: {}, body: new Uint8Array() }, true);
    await idempotency.abandon(use);
    expect(await idempotency.begin({ ...use, bodyHash: 'a' })).toMatchObject({ kind: 'replay' });
  });

  it('pass on when the gateway of a running call died, and the dead call cannot take them back', async () => {
    const { clock, idempotency, use } = await world(engine);
    await idempotency.begin({ ...use, bodyHash: 'a' });
    clock.now += HOUR_MS - 1;
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' })).toEqual({
      kind: 'running',
      callId: 'gen-1',
    });
    clock.now += 1;
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' })).toEqual({ kind: 'new' });
    expect(await idempotency.finish(use, { status: 200, headers: {}, body: Buffer.from('late') }, true)).toBe(false);
    expect(
      await idempotency.finish(
        { ...use, callId: 'gen-2' },
        { status: 200, headers: {}, body: Buffer.from('own') },
        true,
      ),
    ).toBe(true);
    expect(await idempotency.begin({ ...use, callId: 'gen-3', bodyHash: 'a' })).toMatchObject({
      kind: 'replay',
      body: Buffer.from('own'),
    });
  });

  it('of a call that was charged are not run again, though its reply was lost', async () => {
    const { clock, idempotency, use, charge } = await world(engine);
    await idempotency.begin({ ...use, bodyHash: 'a' });
    await charge(use.callId);
    // Whoever could not hear that the settlement happened takes it for failed.
    await idempotency.abandon(use);
    // It has ended, so nobody is told to wait for it.
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' })).toEqual({
      kind: 'lost',
      callId: 'gen-1',
    });
    clock.now += HOUR_MS;
    expect(await idempotency.sweep()).toBe(0);
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' })).toEqual({
      kind: 'lost',
      callId: 'gen-1',
    });
    clock.now += 24 * HOUR_MS;
    expect(await idempotency.sweep()).toBe(1);
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' })).toEqual({ kind: 'new' });
  });

  it('of a call that ended with a charge of 0 are free, also if its gateway died before it freed them', async () => {
    const { clock, idempotency, use, charge } = await world(engine);
    for (const key of ['abandoned', 'died', 'swept']) {
      await idempotency.begin({ ...use, key, callId: `call of ${key}`, bodyHash: 'a' });
      await charge(`call of ${key}`, 0n);
    }
    await idempotency.abandon({ ...use, key: 'abandoned', callId: 'call of abandoned' });
    expect(await idempotency.begin({ ...use, key: 'abandoned', bodyHash: 'a' })).toEqual({ kind: 'new' });
    await idempotency.abandon({ ...use, key: 'abandoned' });
    clock.now += HOUR_MS;
    expect(await idempotency.begin({ ...use, key: 'died', bodyHash: 'a' })).toEqual({ kind: 'new' });
    expect(await idempotency.sweep()).toBe(1);
  });

  it('of calls that died with the only gateway are free at its next start, but not where the call was charged', async () => {
    const { idempotency, use, charge } = await world(engine);
    await idempotency.begin({ ...use, bodyHash: 'a' });
    await idempotency.begin({ ...use, key: 'charged', callId: 'gen-9', bodyHash: 'a' });
    await charge('gen-9');
    await idempotency.endRunning();
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' })).toEqual({ kind: 'new' });
    expect(await idempotency.begin({ ...use, key: 'charged', callId: 'gen-3', bodyHash: 'a' })).toEqual({
      kind: 'lost',
      callId: 'gen-9',
    });
  });

  it('that could not be freed while the database was away are freed by the sweep', async () => {
    const { idempotency, use, away } = await world(engine);
    await idempotency.begin({ ...use, bodyHash: 'a' });
    away(true);
    await idempotency.abandon(use);
    await expect(idempotency.sweep()).rejects.toMatchObject({ unavailable: true });
    away(false);
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' })).toEqual({
      kind: 'running',
      callId: 'gen-1',
    });
    await idempotency.sweep();
    expect(await idempotency.begin({ ...use, callId: 'gen-2', bodyHash: 'a' })).toEqual({ kind: 'new' });
  });

  it('end after their time, and are swept', async () => {
    const { clock, idempotency, use } = await world(engine);
    for (let n = 0; n < 5; n += 1) {
      await idempotency.begin({ ...use, key: `k${n}`, bodyHash: 'a' });
      await idempotency.finish({ ...use, key: `k${n}` }, { status: 200, headers: {}, body: new Uint8Array() }, true);
    }
    clock.now += 24 * HOUR_MS - 1;
    expect(await idempotency.sweep()).toBe(0);
    expect(await idempotency.begin({ ...use, key: 'k0', bodyHash: 'a' })).toMatchObject({ kind: 'replay' });
    clock.now += 1;
    expect(await idempotency.begin({ ...use, key: 'k0', bodyHash: 'other' })).toEqual({ kind: 'new' });
    expect(await idempotency.sweep(3)).toBe(3);
    expect(await idempotency.sweep()).toBe(1);
    expect(await idempotency.sweep()).toBe(0);
  });
});

describe('idempotency keys on the wire', () => {
  it('have 1 to 255 printable characters', () => {
    for (const key of ['x', 'a b', '~'.repeat(255)]) expect(parseIdempotencyKey(key)).toBe(key);
    for (const key of [undefined, null, 7, '', '~'.repeat(256), 'a\nb', 'ü', ['a']]) {
      expect(() => parseIdempotencyKey(key)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
    }
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 300 }), (text) => {
        try {
          return parseIdempotencyKey(text) === text;
        } catch (error) {
          return (error as { code?: string }).code === 'invalid_request';
        }
      }),
    );
  });

  it('are answered with 409, and with Retry-After while the first call runs', () => {
    const conflict = toHttpError(idempotencyError('conflict'));
    expect([conflict.status, conflict.body.error.type, conflict.headers]).toEqual([409, 'idempotency_conflict', {}]);
    const running = toHttpError(idempotencyError('running'));
    expect([running.status, running.body.error.type, running.headers]).toEqual([
      409,
      'idempotency_conflict',
      { 'retry-after': '1' },
    ]);
    const lost = toHttpError(idempotencyError('lost'));
    expect([lost.status, lost.body.error.type, lost.headers]).toEqual([409, 'idempotency_conflict', {}]);
  });
});
