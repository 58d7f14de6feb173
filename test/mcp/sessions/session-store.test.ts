import { describe, expect, it } from 'vitest';
import { createSessionStore } from '../../../src/mcp/request/session-store.ts';
import { ENGINES, openTestDatabase, type EngineName } from '../../gateway/test-database.ts';

const MINUTE_MS = 60_000;

async function world(engine: EngineName) {
  const clock = { now: 1_700_000_000_000 };
  const database = await openTestDatabase(engine);
  const store = createSessionStore(database, { now: () => clock.now });
  /** Another gateway on the same database. */
  const other = createSessionStore(database, { now: () => clock.now });
  const session = (id: string, lastsMs = MINUTE_MS, account = 'alice', kind = 'mcp') => ({
    id,
    account,
    kind,
    state: `{"of":"${id}"}`,
    expiresAt: clock.now + lastsMs,
  });
  return { clock, store, other, session };
}

describe.each(ENGINES)('kept sessions on %s', (engine) => {
  it('are found by every gateway, as they were put', async () => {
    const { store, other, session } = await world(engine);
    await store.put(session('one'));
    expect(await other.get('one')).toEqual(session('one'));
    expect(await other.get('two')).toBeNull();
  });

  it('are gone when their time is over, swept or not, and do not come back', async () => {
    const { clock, store, session } = await world(engine);
    await store.put(session('one'));
    clock.now += MINUTE_MS - 1;
    expect(await store.get('one')).not.toBeNull();
    clock.now += 1;
    expect(await store.get('one')).toBeNull();
    expect(await store.touch('one', clock.now + MINUTE_MS)).toBe(false);
    expect(await store.countOf({ account: 'alice', within: null }, 'mcp')).toEqual({ own: 0, together: 0 });
  });

  it('last longer when they are touched, and never shorter', async () => {
    const { clock, store, other, session } = await world(engine);
    await store.put(session('one'));
    expect(await store.touch('one', clock.now + 3 * MINUTE_MS)).toBe(true);
    expect(await other.touch('one', clock.now + 2 * MINUTE_MS)).toBe(true);
    clock.now += 3 * MINUTE_MS - 1;
    expect(await store.get('one')).not.toBeNull();
    clock.now += 1;
    expect(await store.get('one')).toBeNull();
  });

  it('change their state and keep their time', async () => {
    const { store, session } = await world(engine);
    await store.put(session('one'));
    expect(await store.change('one', 'other')).toBe(true);
    expect(await store.get('one')).toEqual({ ...session('one'), state: 'other' });
    expect(await store.change('two', 'other')).toBe(false);
  });

  it('end once', async () => {
    const { store, other, session } = await world(engine);
    await store.put(session('one'));
    expect(await store.delete('one')).toBe(true);
    expect(await other.delete('one')).toBe(false);
    expect(await other.get('one')).toBeNull();
  });

  it('are counted by account and kind', async () => {
    const { store, session } = await world(engine);
    for (const id of ['a', 'b', 'c']) await store.put(session(id));
    await store.put(session('d', MINUTE_MS, 'bob'));
    await store.put(session('e', MINUTE_MS, 'alice', 'other'));
    expect(await store.countOf({ account: 'alice', within: null }, 'mcp')).toEqual({ own: 3, together: 3 });
    expect(await store.countOf({ account: 'bob', within: null }, 'mcp')).toEqual({ own: 1, together: 1 });
    expect(await store.countOf({ account: 'carol', within: null }, 'mcp')).toEqual({ own: 0, together: 0 });
  });

  it('give up the one of an account that ends first, if it ends early enough', async () => {
    const { clock, store, session } = await world(engine);
    await store.put(session('late', 3 * MINUTE_MS));
    await store.put(session('early', MINUTE_MS));
    await store.put(session('bobs', 1, 'bob'));
    await store.put(session('other kind', 1, 'alice', 'other'));
    expect(await store.takeOldest({ account: 'alice', within: null }, 'mcp', clock.now + MINUTE_MS - 1)).toBeNull();
    expect(await store.takeOldest({ account: 'alice', within: null }, 'mcp', clock.now + 9 * MINUTE_MS)).toEqual(
      session('early', MINUTE_MS),
    );
    expect(await store.takeOldest({ account: 'alice', within: null }, 'mcp', clock.now + 9 * MINUTE_MS)).toEqual(
      session('late', 3 * MINUTE_MS),
    );
    expect(await store.takeOldest({ account: 'alice', within: null }, 'mcp', clock.now + 9 * MINUTE_MS)).toBeNull();
    expect(await store.get('bobs')).not.toBeNull();
  });

  it('of a part of an account are counted with all and by themselves, and make no room for those of another', async () => {
    const { clock, store, session } = await world(engine);
    await store.put(session('whole'));
    await store.put({ ...session('of a key', 2 * MINUTE_MS), within: 'key a' });
    const [a, b] = ['key a', 'key b'].map((within) => ({ account: 'alice', within }));
    expect(await store.countOf(a!, 'mcp')).toEqual({ own: 1, together: 2 });
    expect(await store.countOf(b!, 'mcp')).toEqual({ own: 0, together: 2 });
    expect(await store.takeOldest(b!, 'mcp', clock.now + 9 * MINUTE_MS)).toBeNull();
    expect(await store.takeOldest(a!, 'mcp', clock.now + 9 * MINUTE_MS)).toMatchObject({ id: 'of a key' });
  });

  it('are swept when their time is over, in portions, of one kind', async () => {
    const { clock, store, session } = await world(engine);
    for (const id of ['a', 'b', 'c']) await store.put(session(id));
    await store.put(session('longer', 2 * MINUTE_MS));
    await store.put(session('other', 1, 'alice', 'other'));
    clock.now += MINUTE_MS;
    expect(await store.sweep('mcp', 2)).toHaveLength(2);
    expect(await store.sweep('mcp', 2)).toHaveLength(1);
    expect(await store.sweep('mcp', 2)).toHaveLength(0);
    expect(await store.get('longer')).not.toBeNull();
    expect((await store.sweep('other', 2)).map(({ id }) => id)).toEqual(['other']);
  });

  it('are given to one of many sweepers alone', async () => {
    const { clock, store, other, session } = await world(engine);
    const ids = Array.from({ length: 60 }, (_, n) => `session ${n}`);
    for (const id of ids) await store.put(session(id));
    clock.now += MINUTE_MS;
    const swept: string[] = [];
    const run = async (of: typeof store) => {
      for (;;) {
        const rows = await of.sweep('mcp', 7);
        if (rows.length === 0) return;
        swept.push(...rows.map(({ id }) => id));
      }
    };
    await Promise.all([run(store), run(other), run(store), run(other)]);
    expect(swept.toSorted()).toEqual(ids.toSorted());
  });
});
