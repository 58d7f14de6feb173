import { describe, expect, test } from 'vitest';
import { createKeyStore } from '#auth/keys';
import { createStateStore } from '#authorization';
import { createAdapter } from '../../../src/gateway/authorization/adapter.ts';
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

  test('a proof is known for as long as the library accepts it, also one of a clock that is ahead', async () => {
    const { clock, state } = await open();
    const adapter = createAdapter('ReplayDetection', {
      state,
      keys: { find: async () => null, delete: async () => false },
      clientSecrets: { id: 'one', key: () => new Uint8Array(32) },
      begin: async () => true,
      checkResource: () => {},
      tooMany: () => new Error('too many'),
      usedBefore: () => new Error('used before'),
      now: () => clock.now,
    });
    // Five minutes ahead, so it is accepted for ten.
    const use = () => adapter.upsert('a-proof', {}, 300);
    await use();
    clock.now += 599_999;
    await state.sweep();
    await expect(use()).rejects.toThrow('used before');
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

  test.each(['RefreshToken', 'AuthorizationCode'])(
    'a %s that two have read, and then use, ends the grant',
    async (kind) => {
      const { clock, database, state } = await open();
      const keys = createKeyStore(database, { now: () => clock.now });
      const made = await keys.create({ account: 'tollgate:local:a', label: 'x', kind: 'live', client: 'a program' });
      const grantKey = made!.record.hash;
      const usedBefore = () => new Error('used before');
      const others = {
        clientSecrets: { id: 'k', key: () => new Uint8Array(32) },
        begin: async () => true,
        checkResource: () => {},
      };
      const adapter = createAdapter(kind, { state, keys, ...others, tooMany: Error, usedBefore, now: () => clock.now });
      await state.put({ ...row('text', clock.now + 1_000), kind, grantKey });
      for (const read of [await adapter.find('text'), await adapter.find('text')])
        expect(read).not.toHaveProperty('consumed');
      await adapter.consume('text');
      expect(await keys.find(grantKey)).not.toBeNull();
      await expect(adapter.consume('text')).rejects.toThrow('used before');
      expect(await keys.find(grantKey)).toBeNull();
    },
  );

  test('an id is added once', async () => {
    const { clock, state } = await open();
    expect(await state.add(row('proof', clock.now + 10))).toBe(true);
    expect(await state.add(row('proof', clock.now + 10))).toBe(false);
  });

  const DAY = 24 * 60 * 60_000;
  const begun = (kind: string, id: string, expiresAt: number) => ({ kind, id, payload: {}, grantKey: null, expiresAt });

  test('a place begins 500 of a kind, until they end or a person agrees', async () => {
    const { clock, state } = await open();
    const begin = (index: number, place = '192.0.2.0/24', kind = 'Client') =>
      state.begin(begun(kind, `${place}-${index}`, clock.now + DAY), place);
    const made: boolean[] = [];
    // More at once than the database has connections, and fewer than would wait longer than they may.
    while (made.length < 510)
      made.push(...(await Promise.all(Array.from({ length: 30 }, (_none, index) => begin(made.length + index)))));
    expect(made.filter(Boolean)).toHaveLength(500);
    expect(await begin(0, '198.51.100.0/24')).toBe(true);
    expect(await begin(0, '192.0.2.0/24', 'Interaction')).toBe(true);
    await state.keepClient(`192.0.2.0/24-${made.indexOf(true)}`, clock.now + 7 * DAY);
    expect([await begin(600), await begin(601)]).toEqual([true, false]);
    clock.now += DAY;
    // Those that have ended do not count, swept or not.
    expect(await begin(602)).toBe(true);
    expect(await state.find('Client', `192.0.2.0/24-${made.indexOf(true)}`)).not.toBeNull();
    expect(await state.find('Client', '192.0.2.0/24-600')).toBeNull();
  });

  test('all places together begin 10,000 of a kind, and one that has few is served while others are not', async () => {
    const { clock, database, state } = await open();
    // 24 places with 412 each: 9,888.
    const rows = Array.from({ length: 24 }, (_none, place) => ({
      statement: {
        name: 'test/begin-many',
        text: `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 412)
          INSERT INTO authorization_state (kind, id, payload, network, expires_at)
          SELECT 'Interaction', $1 || '-' || i, '{}', $1, ${clock.now + DAY} FROM n`,
      },
      params: [`place-${place}`],
    }));
    await database.batch(rows);
    const begin = (id: string, place: string) => state.begin(begun('Interaction', id, clock.now + DAY), place);
    expect(await begin('more', 'place-1')).toBe(false);
    for (let index = 0; index < 56; index += 1) expect(await begin(`few-${index}`, 'place-few')).toBe(true);
    // As many are free as this place has.
    expect(await begin('few-more', 'place-few')).toBe(false);
    expect(await begin('first', 'place-new')).toBe(true);
    clock.now += DAY;
    expect(await begin('later', 'place-1')).toBe(true);
  });
});
