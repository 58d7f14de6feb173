import { describe, expect, test } from 'vitest';
import { createStateStore } from '#authorization';
import { ENGINES } from '../../support/engines.ts';
import { openTestDatabase } from '../test-database.ts';

const ALL = { name: 'test/authorization-state', text: 'SELECT * FROM authorization_state' };

describe.each(ENGINES)('the state of the authorization server on %s', (engine) => {
  const open = async () => {
    const clock = { now: 1_000_000 };
    const database = await openTestDatabase(engine);
    return { clock, database, state: createStateStore(database, () => clock.now) };
  };
  const row = (id: string, expiresAt: number) => ({
    kind: 'RefreshToken',
    id,
    payload: { scope: 'call' },
    grantKey: 'a-key',
    expiresAt,
  });

  test('a row is found by its id until its end, and then swept', async () => {
    const { clock, database, state } = await open();
    await state.put(row('token-text', clock.now + 10));
    await state.put(row('another', clock.now + 20));
    expect(await state.find('RefreshToken', 'token-text')).toEqual({
      payload: { scope: 'call' },
      grantKey: 'a-key',
      consumedAt: null,
      expiresAt: clock.now + 10,
    });
    expect(await state.find('AccessToken', 'token-text')).toBeNull();
    clock.now += 10;
    expect(await state.find('RefreshToken', 'token-text')).toBeNull();
    expect(await state.sweep()).toBe(1);
    expect(await state.sweep()).toBe(0);
    expect(await database.query(ALL)).toHaveLength(1);
  });

  test('the text of a token is not in the database', async () => {
    const { clock, database, state } = await open();
    await state.put(row('token-text', clock.now + 10));
    const text = JSON.stringify(await database.query(ALL), (_name, value: unknown) =>
      typeof value === 'bigint' ? Number(value) : value,
    );
    expect(text).toContain('RefreshToken');
    expect(text).not.toContain('token-text');
  });

  test('of many who use a token at once, one does', async () => {
    const { clock, state } = await open();
    await state.put(row('token', clock.now + 1_000));
    const used = await Promise.all(
      Array.from({ length: 10 }, () => state.consume('RefreshToken', 'token', clock.now + 5)),
    );
    expect(used.filter(Boolean)).toHaveLength(1);
    expect(await state.find('RefreshToken', 'token')).toMatchObject({ consumedAt: clock.now });
    clock.now += 5;
    expect(await state.find('RefreshToken', 'token')).toBeNull();
  });

  test('an id is added once', async () => {
    const { clock, state } = await open();
    expect(await state.add(row('proof', clock.now + 10))).toBe(true);
    expect(await state.add(row('proof', clock.now + 10))).toBe(false);
  });

  test('a network registers a hundred clients, until they end or are allowed something', async () => {
    const { clock, state } = await open();
    const register = (index: number, network = '192.0.2.1') =>
      state.registerClient(`client-${network}-${index}`, {}, network);
    for (let index = 0; index < 100; index += 1) expect(await register(index)).toBe(true);
    expect(await register(100)).toBe(false);
    expect(await register(0, '192.0.2.2')).toBe(true);
    const until = clock.now + 7 * 24 * 60 * 60_000;
    await state.keepClient('client-192.0.2.1-7', until);
    expect(await register(101)).toBe(true);
    clock.now += 24 * 60 * 60_000;
    expect(await state.find('Client', 'client-192.0.2.1-8')).toBeNull();
    expect(await state.find('Client', 'client-192.0.2.1-7')).not.toBeNull();
    expect(await state.sweep(1_000)).toBe(101);
    expect(await register(102)).toBe(true);
  });
});
