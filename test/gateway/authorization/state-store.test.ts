import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createKeyStore } from '#auth/keys';
import { createStateStore } from '#authorization';
import { createSealedTexts } from '#security';
import { rowsParam } from '#store';
import { createAdapter } from '../../../src/gateway/authorization/adapter.ts';
import { ENGINES } from '../../support/engines.ts';
import { openTestDatabase } from '../test-database.ts';

const refreshTexts = createSealedTexts(Buffer.alloc(32));
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

  const DAY = 24 * 60 * 60_000;
  const begun = (kind: string, id: string, expiresAt: number) => ({ kind, id, payload: {}, grantKey: null, expiresAt });

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
      refreshTexts,
      begin: async () => true,
      checkResource: () => {},
      proofKey: () => '',
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

  test('of many who use a token at once, one is the first, and the others are the same until its time is over', async () => {
    const { clock, state } = await open();
    await state.put(row('token', clock.now + 1_000));
    const use = (by: number, since: number) =>
      state.consume('RefreshToken', 'token', { payload: { by }, until: clock.now + 100, since });
    const used = await Promise.all(Array.from({ length: 10 }, (_none, by) => use(by, clock.now - 5)));
    expect(new Set(used.map((payload) => payload?.['by'])).size).toBe(1);
    const usedAt = clock.now;
    expect(await state.find('RefreshToken', 'token')).toMatchObject({ consumedAt: usedAt, payload: used[0] });
    clock.now += 5;
    expect(await use(11, usedAt - 1)).toEqual(used[0]);
    expect(await use(12, usedAt)).toBeNull();
    clock.now += 100;
    expect(await state.find('RefreshToken', 'token')).toBeNull();
  });

  test('of the tokens of a grant the newest are kept, of the unused and of the used ones', async () => {
    const { clock, state } = await open();
    for (let index = 0; index < 6; index += 1) await state.put(row(`token-${index}`, clock.now + 10 + (index >> 1)));
    const other = { ...row('other', clock.now + 1), grantKey: 'another-key' };
    await state.put(other);
    const use = { payload: {}, until: clock.now + 10, since: 0 };
    expect(await state.consume('RefreshToken', 'token-0', use)).toEqual({});
    await state.keepNewest('RefreshToken', 'a-key', 'unused', 3);
    await state.keepNewest('AccessToken', 'another-key', 'unused', 0);
    const has = async (id: string) => (await state.find('RefreshToken', id)) !== null;
    const kept = await Promise.all([0, 1, 2, 3, 4, 5].map((index) => has(`token-${index}`)));
    // Two ended at the same time.
    expect([kept[0], kept[1], Number(kept[2]) + Number(kept[3]), kept[4], kept[5]]).toEqual([
      true,
      false,
      1,
      true,
      true,
    ]);
    expect(await has('other')).toBe(true);
    // The newest of the used ones was used last, whenever it ends.
    expect(await state.keepNewest('RefreshToken', 'a-key', 'used', 1)).toBeNull();
    clock.now += 1;
    await state.put(row('first', clock.now + 1));
    await state.consume('RefreshToken', 'first', { payload: {}, until: clock.now + 1, since: 0 });
    expect(await state.keepNewest('RefreshToken', 'a-key', 'used', 1)).toBe(clock.now + 9);
    expect([await has('token-0'), await has('first'), await has('token-5')]).toEqual([false, true, true]);
  });

  test('a grant ends with its key, and its client an hour after its last grant', async () => {
    const { clock, database, state } = await open();
    const keys = createKeyStore(database, { now: () => clock.now });
    const YEAR = 366 * 24 * 60 * 60_000;
    await state.begin(begun('Client', 'program', clock.now + DAY), '192.0.2.0/24');
    await state.keepClient('program', clock.now + YEAR);
    const grants: string[] = [];
    for (const label of ['one', 'two', 'three']) {
      const made = await keys.create({ account: 'tollgate:local:a', label, kind: 'live', client: 'a program' });
      const grantKey = made!.record.hash;
      grants.push(grantKey);
      const grant = { kind: 'Grant', id: grantKey, payload: {}, grantKey, expiresAt: clock.now + YEAR };
      await state.put({ ...grant, client: 'program' });
      await state.put({ ...row(`token-${label}`, clock.now + YEAR), grantKey });
    }
    const [one, two, three] = grants as [string, string, string];
    await state.endGrant(one);
    expect(await state.find('RefreshToken', 'token-one')).not.toBeNull();
    await keys.delete('tollgate:local:a', one);
    await state.endGrant(one);
    expect(await state.find('RefreshToken', 'token-one')).toBeNull();
    // The gateway stopped before it could end the others.
    await keys.delete('tollgate:local:a', two);
    await state.sweep();
    expect(await state.find('Grant', two)).toBeNull();
    clock.now += 2 * 60 * 60_000;
    expect(await state.find('Client', 'program')).not.toBeNull();
    await keys.delete('tollgate:local:a', three);
    await state.sweep();
    expect(await state.find('Client', 'program')).not.toBeNull();
    clock.now += 60 * 60_000;
    expect(await state.find('Client', 'program')).toBeNull();
    await state.sweep();
    expect(await database.query(ALL)).toEqual([]);
  });

  test.each(['RefreshToken', 'AuthorizationCode'])(
    'a %s that two have read, of whom one uses it after its time, ends the grant',
    async (kind) => {
      const { clock, database, state } = await open();
      const keys = createKeyStore(database, { now: () => clock.now });
      const made = await keys.create({ account: 'tollgate:local:a', label: 'x', kind: 'live', client: 'a program' });
      const grantKey = made!.record.hash;
      const usedBefore = () => new Error('used before');
      const others = {
        clientSecrets: { id: 'k', key: () => new Uint8Array(32) },
        refreshTexts,
        begin: async () => true,
        checkResource: () => {},
        proofKey: () => '',
      };
      const adapter = createAdapter(kind, { state, keys, ...others, tooMany: Error, usedBefore, now: () => clock.now });
      await state.put({ ...row('text', clock.now + 100_000), kind, grantKey, payload: { exp: clock.now / 1_000 } });
      for (const read of [await adapter.find('text'), await adapter.find('text')])
        expect(read).not.toHaveProperty('consumed');
      await adapter.consume('text');
      clock.now += 59_999;
      await adapter.consume('text');
      expect(await adapter.find('text')).not.toHaveProperty('consumed');
      expect(await keys.find(grantKey)).not.toBeNull();
      clock.now += 1;
      await expect(adapter.consume('text')).rejects.toThrow('used before');
      const late = await adapter.find('text');
      expect(late).toHaveProperty('consumed');
      // The library would take one that has expired for nothing worse.
      expect(late!.exp! * 1_000).toBeGreaterThan(clock.now);
      expect(await keys.find(grantKey)).toBeNull();
    },
  );

  test('an id is added once', async () => {
    const { clock, state } = await open();
    expect(await state.add(row('proof', clock.now + 10))).toBe(true);
    expect(await state.add(row('proof', clock.now + 10))).toBe(false);
  });

  test('a place begins 500 of a kind, until they end or a person agrees', async () => {
    const { clock, state } = await open();
    const begin = (index: number, address = '192.0.2.7', kind = 'Client') =>
      state.begin(begun(kind, `${address}-${index}`, clock.now + DAY), address);
    const made: boolean[] = [];
    // More at once than the database has connections, and fewer than would wait longer than they may.
    while (made.length < 510)
      made.push(...(await Promise.all(Array.from({ length: 30 }, (_none, index) => begin(made.length + index)))));
    expect(made.filter(Boolean)).toHaveLength(500);
    expect(await begin(0, '198.51.100.7')).toBe(true);
    expect(await begin(0, '192.0.2.7', 'Interaction')).toBe(true);
    await state.keepClient(`192.0.2.7-${made.indexOf(true)}`, clock.now + 7 * DAY);
    expect([await begin(600), await begin(601)]).toEqual([true, false]);
    // An address beside it that has none gets the place of its oldest one.
    expect(await begin(0, '192.0.2.8')).toBe(true);
    clock.now += DAY;
    // Those that have ended do not count, swept or not.
    expect(await begin(602)).toBe(true);
    expect(await state.find('Client', `192.0.2.7-${made.indexOf(true)}`)).not.toBeNull();
    expect(await state.find('Client', '192.0.2.7-600')).toBeNull();
  });

  type TestDatabase = Awaited<ReturnType<typeof open>>['database'];

  /** Stores 10,000 sign-ins that have begun, one after the other. */
  async function fill(database: TestDatabase, networkOf: (index: number) => string, endsAt: number) {
    const text = `INSERT INTO authorization_state (kind, id, payload, network, expires_at)
      SELECT 'Interaction', value ->> 0, '{}', value ->> 1, CAST(value ->> 2 AS BIGINT) FROM json_each($1)`;
    const rows = Array.from({ length: 10_000 }, (_none, index) => [
      hash('sha256', String(index)),
      networkOf(index),
      endsAt + index,
    ]);
    await database.query({ name: 'test/fill', text }, [rowsParam(rows)]);
  }
  const countOf = async (database: TestDatabase, network: string): Promise<number> => {
    const text = "SELECT COUNT(*) AS found FROM authorization_state WHERE network >= $1 AND network < $1 || 'h'";
    return Number((await database.query({ name: 'test/found', text }, [network]))[0]!['found']);
  };

  test('a site with 10,000 networks makes way for each that has fewer, and its neighbours get some of its own', async () => {
    const { clock, database, state } = await open();
    const site = '20010db80077';
    // One in each network of 64 bits.
    await fill(database, (index) => site + index.toString(16).padStart(4, '0'), clock.now + DAY);
    const begin = (id: string, address: string) => state.begin(begun('Interaction', id, clock.now + DAY), address);
    for (let index = 0; index < 60; index++) expect(await begin(`few-${index}`, '198.51.100.7')).toBe(true);
    expect(await begin('other', '2001:db8:78::1')).toBe(true);
    expect(await begin('neighbour', '2001:db8:77:ffff::1')).toBe(true);
    expect(await countOf(database, 'gc6336407')).toBe(60);
    expect(await countOf(database, site)).toBe(10_000 - 61);
    expect(await state.find('Interaction', 'other')).not.toBeNull();
  });

  test('where nobody has two, chance decides who makes way', async () => {
    const { clock, database, state } = await open();
    await fill(database, (index) => `2001${(0x10000000 + index).toString(16)}0000`, clock.now + DAY);
    const ids = Array.from({ length: 20 }, (_none, index) => `late-${index}`);
    for (const [index, id] of ids.entries())
      expect(await state.begin(begun('Interaction', id, clock.now + 2 * DAY), `198.51.${index}.7`)).toBe(true);
    // Not the oldest ones: about 2 of the first 1,000 went.
    const text = 'SELECT COUNT(*) AS found FROM authorization_state WHERE expires_at <= $1';
    const rest = await database.query({ name: 'test/oldest', text }, [clock.now + DAY + 1_000]);
    expect(Number(rest[0]!['found'])).toBeGreaterThan(980);
  });
});
