import { describe, expect, it } from 'vitest';
import { createKeyStore, KEYS_PER_ACCOUNT_MAX, type NewKeyFields } from '../../../src/gateway/auth/key-store.ts';
import { createWebSessions } from '../../../src/gateway/auth/sessions/web-sessions.ts';
import { parseKey } from '../../../src/gateway/auth/api-key.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { allAtOnce, ENGINES, openTestDatabase } from '../test-database.ts';

const NOW = Date.parse('2026-03-04T05:06:07.089Z');
const ALICE = 'tollgate:local:alice';
const BOB = 'tollgate:local:bob';

describe.each(ENGINES)('the key store on %s', (engine) => {
  it('keeps the names of live keys, and of deleted ones the newest', async () => {
    const database = await openTestDatabase(engine);
    let at = NOW;
    const keys = createKeyStore(database, { now: () => (at += 1), deletedNamesMax: 2 });
    const make = async (label: string) =>
      (await keys.create({ account: ALICE, label, kind: 'live', limit: null, limitReset: null }))!.record.hash;
    await make('live');
    await keys.create({ account: BOB, label: 'of Bob', kind: 'live', limit: null, limitReset: null });
    for (const label of ['one', 'two', 'three', 'four']) await keys.delete(ALICE, await make(label));
    const last = await make('last');
    expect([...(await keys.names(ALICE)).values()].toSorted()).toEqual(['four', 'last', 'live', 'three']);
    expect([...(await keys.labels([last])).values()]).toEqual(['last']);
    expect([...(await keys.names(BOB)).values()]).toEqual(['of Bob']);
  });

  it('keeps no texts of deleted keys', async () => {
    const database = await openTestDatabase(engine);
    const keys = createKeyStore(database, { now: () => NOW });
    const make = async () =>
      (await keys.create({ account: ALICE, label: 'k', kind: 'live', limit: null, limitReset: null }))!.record.hash;
    const [gone, stays] = [await make(), await make()];
    for (let round = 0; round < 3; round += 1) await keys.rotate(ALICE, gone, 0);
    await keys.delete(ALICE, gone);
    await keys.rotate(ALICE, stays, 60_000);
    const rows = await database.query(adHoc('SELECT DISTINCT key_hash FROM key_secrets'));
    expect(rows.map((row) => row['key_hash'])).toEqual([stays]);
  });

  it('keeps what a key was made with, and never its text', async () => {
    const database = await openTestDatabase(engine);
    const keys = createKeyStore(database, { now: () => NOW });
    const made = await keys.create({
      account: ALICE,
      label: 'ci "robot" 🤖',
      kind: 'live',
      expiresAt: NOW + 1,
      limit: 2n ** 50n,
      limitReset: 'weekly',
      limitSoft: true,
      limitNotify: [80, 100],
      requestsPerMinute: 30,
      allowedServices: ['a/b', 'c:d'],
      askAbove: 5n,
      tags: { team: 'blue' },
      continues: false,
    });
    expect(made!.record).toEqual({
      hash: parseKey(made!.text)!.hash,
      account: ALICE,
      label: 'ci "robot" 🤖',
      member: null,
      client: null,
      development: false,
      disabled: false,
      createdAt: NOW,
      expiresAt: NOW + 1,
      limit: 2n ** 50n,
      limitReset: 'weekly',
      limitSoft: true,
      limitNotify: [80, 100],
      limitBy: 'account',
      requestsPerMinute: 30,
      tokensPerMinute: null,
      allowedServices: ['a/b', 'c:d'],
      askAbove: 5n,
      tags: { team: 'blue' },
      continues: false,
    });
    expect(await keys.find(made!.record.hash)).toEqual(made!.record);
    const rows = await database.query({ name: 'test/all-keys', text: 'SELECT * FROM api_keys' });
    expect(
      JSON.stringify(rows, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
    ).not.toContain(made!.text.slice(-20));

    const plain = await keys.create({ account: ALICE, label: 'plain', kind: 'development' });
    expect(plain!.record).toMatchObject({
      development: true,
      expiresAt: null,
      limit: null,
      limitReset: null,
      allowedServices: null,
    });
  });

  it('makes one key for a member and its playground, whoever asks at the same time', async () => {
    const database = await openTestDatabase(engine);
    await database.query({
      name: 'test/add-member',
      text: `INSERT INTO members (account, member, role, name, created_at) VALUES ('${ALICE}', '${BOB}', 'member', 'Bob', 0)`,
    });
    const [one, other] = [createKeyStore(database, { now: () => NOW }), createKeyStore(database, { now: () => NOW })];
    const fields = { account: ALICE, label: 'x', kind: 'live', member: BOB, client: 'the page', single: true } as const;
    const made = await allAtOnce(database, 'api_keys', (index) => (index % 2 === 0 ? one : other).create(fields));
    expect(made.filter((each) => each !== null)).toHaveLength(1);
    expect(await one.create({ ...fields, kind: 'development' })).not.toBeNull();
    expect(await one.create({ ...fields, client: 'another' })).not.toBeNull();
    expect(await one.create({ ...fields, single: false })).not.toBeNull();
  });

  it('changes only the fields it is given', async () => {
    const keys = createKeyStore(await openTestDatabase(engine), { now: () => NOW });
    const { record } = (await keys.create({
      account: ALICE,
      label: 'one',
      kind: 'live',
      limit: 7n,
      limitReset: 'daily',
      allowedServices: ['x'],
    }))!;
    expect(await keys.update(ALICE, record.hash, {})).toEqual(record);
    expect(await keys.update(ALICE, record.hash, { disabled: true })).toEqual({ ...record, disabled: true });
    expect(await keys.update(ALICE, record.hash, { label: 'two' })).toEqual({
      ...record,
      label: 'two',
      disabled: true,
    });
    const opened = {
      label: 'two',
      disabled: false,
      expiresAt: NOW + 5,
      limit: null,
      limitReset: null,
      allowedServices: null,
    };
    const open = { ...record, ...opened, limitBy: null };
    expect(await keys.update(ALICE, record.hash, opened)).toEqual(open);
    expect(await keys.find(record.hash)).toEqual(open);
    const limited = { limit: 5n, limitReset: 'daily' } as const;
    expect(await keys.update(ALICE, record.hash, limited, 'operator')).toEqual({
      ...open,
      ...limited,
      limitBy: 'operator',
    });
  });

  it('gives a limit that becomes soft the usual percentages, unless it has others', async () => {
    const keys = createKeyStore(await openTestDatabase(engine), { now: () => NOW });
    const notifyOf = async (limitNotify: readonly number[] | null) => {
      const { record } = (await keys.create({ account: ALICE, label: 'one', kind: 'live', limit: 1n, limitNotify }))!;
      return (await keys.update(ALICE, record.hash, { limitSoft: true }))!.limitNotify;
    };
    expect([await notifyOf(null), await notifyOf([90])]).toEqual([[50, 80, 100], [90]]);
  });

  it('makes no key with a session or a key that has ended', async () => {
    const database = await openTestDatabase(engine);
    const keys = createKeyStore(database, { now: () => NOW });
    const sessions = createWebSessions(database, {
      times: { idleMs: 1_000, lifetimeMs: 1_000, adminLifetimeMs: 1_000 },
      now: () => NOW,
    });
    const { session } = await sessions.begin({
      account: ALICE,
      signedInBy: 'person',
      keyHash: null,
      wallet: null,
      client: '',
      person: ALICE,
    });
    const make = async (maker: NonNullable<NewKeyFields['maker']>) =>
      (await keys.create({ account: ALICE, label: 'one', kind: 'live', maker }))?.record ?? null;
    const bySession = { key: null, session: { id: session.id, method: 'person' } } as const;
    const first = (await make(bySession))!;
    const byKey = { key: { hash: first.hash, label: 'one', development: false, access: null } };
    expect(await make(byKey)).not.toBeNull();
    // What a removal of a person does. Requests that were admitted before go on.
    await sessions.endOfPerson(ALICE, null);
    await allAtOnce<unknown>(database, 'api_keys', (index) =>
      index === 4 ? keys.deleteOfPerson(ALICE) : make(index % 2 === 0 ? bySession : byKey),
    );
    expect(await keys.list(ALICE, { offset: 0, limit: 100 })).toEqual([]);
    expect([await make(bySession), await make(byKey)]).toEqual([null, null]);
  });

  it('lets two changes at once both count', async () => {
    const keys = createKeyStore(await openTestDatabase(engine), { now: () => NOW });
    const { record } = (await keys.create({ account: ALICE, label: 'one', kind: 'live' }))!;
    await Promise.all([
      keys.update(ALICE, record.hash, { disabled: true }),
      keys.update(ALICE, record.hash, { label: 'two' }),
    ]);
    expect(await keys.find(record.hash)).toMatchObject({ disabled: true, label: 'two' });
  });

  it("does nothing to another account's key", async () => {
    const keys = createKeyStore(await openTestDatabase(engine), { now: () => NOW });
    const { record } = (await keys.create({ account: ALICE, label: 'one', kind: 'live' }))!;
    expect(await keys.update(BOB, record.hash, { disabled: true })).toBeNull();
    expect(await keys.delete(BOB, record.hash)).toBe(false);
    expect(await keys.list(BOB, { offset: 0, limit: 10 })).toEqual([]);
    expect(await keys.find(record.hash)).toEqual(record);
  });

  it('lists by age, a page at a time, and forgets what is deleted', async () => {
    let now = NOW;
    const keys = createKeyStore(await openTestDatabase(engine), { now: () => (now += 1) });
    const made = [];
    for (const label of ['a', 'b', 'c', 'd', 'e'])
      made.push((await keys.create({ account: ALICE, label, kind: 'live' }))!.record);
    const labels = async (offset: number, limit: number) =>
      (await keys.list(ALICE, { offset, limit })).map((key) => key.label);
    expect(await labels(0, 2)).toEqual(['a', 'b']);
    expect(await labels(2, 2)).toEqual(['c', 'd']);
    expect(await labels(4, 2)).toEqual(['e']);
    expect(await keys.delete(ALICE, made[1]!.hash)).toBe(true);
    expect(await keys.delete(ALICE, made[1]!.hash)).toBe(false);
    expect(await keys.find(made[1]!.hash)).toBeNull();
    expect(await labels(0, 9)).toEqual(['a', 'c', 'd', 'e']);
  });

  it('gives one account no more than its number of keys, and others theirs', async () => {
    const database = await openTestDatabase(engine);
    const keys = createKeyStore(database, { now: () => NOW });
    await database.query({
      name: 'test/many-keys',
      text: `INSERT INTO api_keys (hash, account, label, development, disabled, created_at)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${KEYS_PER_ACCOUNT_MAX - 1})
        SELECT 'hash-' || i, '${ALICE}', 'many', 0, 0, 1 FROM n`,
    });
    // All at once: each waits for the one before, and counts it.
    const all = await allAtOnce(database, 'api_keys', () =>
      keys.create({ account: ALICE, label: 'last', kind: 'live' }),
    );
    const [last, ...more] = all.filter((one) => one !== null);
    expect(last).toBeDefined();
    expect(more).toEqual([]);
    expect(await keys.create({ account: ALICE, label: 'one more', kind: 'live' })).toBeNull();
    expect(await keys.create({ account: BOB, label: 'first', kind: 'live' })).not.toBeNull();
    await keys.delete(ALICE, last!.record.hash);
    expect(await keys.create({ account: ALICE, label: 'again', kind: 'live' })).not.toBeNull();
    // Programs of one member use up the keys of nobody else.
    await database.query({
      name: 'test/member',
      text: `INSERT INTO members (account, member, role, name, created_at) VALUES ('${ALICE}', 'mia', 'member', '', 1)`,
    });
    expect(await keys.create({ account: ALICE, label: 'of a member', kind: 'live', member: 'mia' })).not.toBeNull();
  });
});
