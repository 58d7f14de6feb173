import { expect, it } from 'vitest';
import { createAttempts } from '../../../src/gateway/auth/attempts.ts';
import { createKeyCallers } from '../../../src/gateway/auth/key-callers.ts';
import { createKeyStore } from '../../../src/gateway/auth/key-store.ts';
import { createLimitsStore } from '../../../src/server/accounts/limits-store.ts';
import { createMemberStore, MEMBERS_MAX } from '../../../src/server/accounts/member-store.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { allAtOnce, ENGINES, openTestDatabase } from '../test-database.ts';

const ORG = 'tollgate:local:org';
const now = () => Date.parse('2026-03-04T05:06:07Z');

const NOTIFIES = adHoc("SELECT notifies FROM account_limits WHERE account = $1 AND subject = 'account'");

it.each(ENGINES)('members are added, changed and removed with their keys and limits: %s', async (engine) => {
  const database = await openTestDatabase(engine);
  const keys = createKeyStore(database, { now });
  const limits = createLimitsStore(database, { now });
  const members = createMemberStore(database, { keys, limits, now });
  const [ann, bob] = ['tollgate:local:ann', 'tollgate:local:bob'];
  const add = (member: string, role: 'owner' | 'member') => members.add({ account: ORG, member, role, name: member });
  expect(await add(ann, 'owner')).toMatchObject({ member: ann, role: 'owner', createdAt: now() });
  expect(await add(ann, 'member')).toBeNull();
  expect(await add(bob, 'member')).not.toBeNull();
  expect(
    (await members.accountsOf(bob, { offset: 0, limit: 10 })).map(({ account, label }) => [account, label]),
  ).toEqual([[ORG, '']]);

  const budget = { limit: 5n, limitReset: 'daily', limitSoft: false, notify: [80] } as const;
  const set = {
    budgets: [budget],
    requestsPerMinute: null,
    tokensPerMinute: 7,
    allowedServices: null,
    askAbove: null,
    tags: null,
    tagBudgets: [],
  };
  expect(await limits.change(ORG, bob, set)).toEqual(set);
  // Two changes at once: neither undoes the other.
  await Promise.all([
    limits.change(ORG, 'account', { budgets: [budget] }),
    limits.change(ORG, 'account', { requestsPerMinute: 9 }),
  ]);
  const both = {
    budgets: [budget],
    requestsPerMinute: 9,
    tokensPerMinute: null,
    allowedServices: null,
    askAbove: null,
    tags: null,
    tagBudgets: [],
  };
  expect(await limits.get(ORG, 'account')).toEqual(both);
  expect(await limits.change(ORG, 'account', { requestsPerMinute: null })).toEqual({
    ...both,
    requestsPerMinute: null,
  });
  // What is given is replaced, and nothing else: also whether anybody is told of it.
  await limits.change(ORG, 'account', { tokensPerMinute: 3 });
  await limits.change(ORG, 'account', { requestsPerMinute: 9 });
  expect(await limits.get(ORG, 'account')).toEqual({ ...both, tokensPerMinute: 3 });
  expect(await database.query(NOTIFIES, [ORG])).toEqual([{ notifies: 1n }]);
  await limits.change(ORG, 'account', { requestsPerMinute: null, tokensPerMinute: null });
  const { record } = (await keys.create({ account: ORG, label: 'k', kind: 'live', member: bob }))!;
  expect((await keys.findWithLimits(record.hash))!.ofAccount).toEqual([
    { subject: 'account', limits: { ...set, tokensPerMinute: null } },
    { subject: bob, limits: set },
  ]);
  const attempts = createAttempts({ perMinute: 10, now });
  const callers = createKeyCallers({ keys, limits, attempts, acceptDevelopmentKeys: false, now });
  expect((await callers.callerOfHash(record.hash)).key).toMatchObject({ member: bob });
  callers.close();
  const own = (await keys.create({ account: ORG, label: 'own', kind: 'live' }))!.record;
  expect((await keys.findWithLimits(own.hash))!.ofAccount.map(({ subject }) => subject)).toEqual(['account']);

  expect(await members.change(ORG, ann, { role: 'admin' })).toBeNull();
  expect(await members.remove(ORG, ann)).toBe(false);
  expect(await members.change(ORG, bob, { name: 'Bob' })).toMatchObject({ name: 'Bob', role: 'member' });
  const gone: string[] = [];
  keys.onChange((hash) => gone.push(hash));
  // Keys of a viewer open nothing.
  await members.change(ORG, bob, { role: 'viewer' });
  expect(gone.splice(0)).toEqual([record.hash]);
  expect(await keys.findWithLimits(record.hash)).toBeNull();
  expect(await keys.create({ account: ORG, label: 'k', kind: 'live', member: bob })).toBeNull();
  await members.change(ORG, bob, { role: 'member' });
  expect(gone.splice(0)).toEqual([record.hash]);
  expect(await keys.findWithLimits(record.hash)).not.toBeNull();
  expect(await members.remove(ORG, bob)).toBe(true);
  expect(gone).toEqual([record.hash]);
  expect(await keys.find(record.hash)).toBeNull();
  expect(await limits.limitsOf(ORG)).toHaveLength(1);
  // No key outlives its member, not even one that is made while that one is removed.
  expect(await keys.create({ account: ORG, label: 'late', kind: 'live', member: bob })).toBeNull();
  await add(bob, 'member');
  await Promise.all([
    keys.create({ account: ORG, label: 'race', kind: 'live', member: bob }),
    members.remove(ORG, bob),
    keys.create({ account: ORG, label: 'race', kind: 'live', member: bob }),
  ]);
  expect((await keys.list(ORG, { offset: 0, limit: 10 })).map(({ label }) => label)).toEqual(['own']);

  await add(bob, 'owner');
  const removed = await Promise.all([members.remove(ORG, ann), members.remove(ORG, bob)]);
  expect(removed.filter(Boolean)).toHaveLength(1);
});

const MADE = adHoc('SELECT account FROM consumers WHERE made_by = $1');
const NOT_MADE = adHoc('SELECT account FROM consumers WHERE made_by IS NULL');
const FAILS = adHoc('SELECT 1 FROM a_table_that_is_not_there');

it.each(ENGINES)('a role and the budgets that come with it are changed together or not at all: %s', async (engine) => {
  const database = await openTestDatabase(engine);
  const keys = createKeyStore(database, { now });
  const limits = createLimitsStore(database, { now });
  const members = createMemberStore(database, { keys, limits, now });
  const [ann, bob] = ['tollgate:local:ann', 'tollgate:local:bob'];
  await members.add({ account: ORG, member: ann, role: 'owner', name: ann });
  await members.add({ account: ORG, member: bob, role: 'viewer', name: bob });
  const budgets = [{ limit: 5n, limitReset: 'daily', limitSoft: false, notify: [80] }] as const;
  const told: string[] = [];
  limits.onChange((account) => told.push(account));

  // The database fails when it comes to the budgets: the keys must not open without them.
  const failing = createMemberStore(
    {
      query: database.query.bind(database),
      batch: (steps) =>
        database.batch(
          steps.flatMap((step) => (step.statement.name.includes('limits') ? [step, { statement: FAILS }] : [step])),
        ),
    },
    { keys, limits, now },
  );
  await expect(failing.change(ORG, bob, { role: 'member', limits: { budgets } })).rejects.toThrow();
  expect(await members.find(ORG, bob)).toMatchObject({ role: 'viewer' });
  expect(told.splice(0)).toEqual([ORG]);

  expect(await members.change(ORG, bob, { role: 'member', limits: { budgets } })).toMatchObject({ role: 'member' });
  expect((await limits.get(ORG, bob)).budgets).toEqual(budgets);
  expect(told.splice(0)).toEqual([ORG]);
  // What is not given stays.
  await members.change(ORG, bob, { role: 'admin' });
  expect((await limits.get(ORG, bob)).budgets).toEqual(budgets);
  await members.change(ORG, bob, { limits: { budgets: [] } });
  expect(await limits.limitsOf(ORG)).toEqual([]);

  // The last owner stays one, with the budgets as they were.
  expect(await members.change(ORG, ann, { role: 'admin', limits: { budgets } })).toBeNull();
  // Somebody who was removed on another gateway in the meantime has nothing left, for the day it is added again.
  await members.remove(ORG, bob);
  expect(await members.change(ORG, bob, { role: 'member', limits: { budgets } })).toBeNull();
  await limits.change(ORG, bob, { budgets });
  expect(await limits.limitsOf(ORG)).toEqual([]);
});

it.each(ENGINES)(
  'an organisation is made with its owner or not at all, at most twenty of one maker: %s',
  async (engine) => {
    const database = await openTestDatabase(engine);
    const keys = createKeyStore(database, { now });
    const limits = createLimitsStore(database, { now });
    const members = createMemberStore(database, { keys, limits, now });
    const ann = 'tollgate:local:ann';
    const of = (index: number) => ({ account: `${ORG}-${index}`, label: `x ${index}`, member: ann, name: 'Ann' });
    const made = async () => (await database.query(MADE, [ann])).map(({ account }) => account);

    const failing = createMemberStore(
      {
        query: database.query.bind(database),
        batch: (steps) => database.batch([...steps, { statement: FAILS }]),
      },
      { keys, limits, now },
    );
    await expect(failing.makeOrganisation(of(99))).rejects.toThrow();
    expect(await made()).toEqual([]);

    // All at once: each waits for the one before, and counts it.
    const all = await Promise.all(Array.from({ length: 24 }, (_, index) => members.makeOrganisation(of(index))));
    const owners = all.filter((one) => one !== null);
    expect(owners).toHaveLength(20);
    expect(owners[0]).toMatchObject({ member: ann, role: 'owner', name: 'Ann', createdAt: now() });
    expect(new Set(await made())).toEqual(new Set(owners.map(({ account }) => account)));
    expect(await members.accountsOf(ann, { offset: 0, limit: 50 })).toHaveLength(20);
    expect(await database.query(NOT_MADE)).toEqual([]);
    const bobs = { ...of(100), member: 'tollgate:local:bob' };
    expect(await members.makeOrganisation(bobs)).toMatchObject({
      role: 'owner',
    });
    // Two at once with one label: one is made.
    const twins = await Promise.all(
      [101, 102].map((index) => members.makeOrganisation({ ...bobs, account: `${ORG}-${index}`, label: 'Twin' })),
    );
    expect(twins.filter((one) => one !== null)).toHaveLength(1);
  },
);

const FILL = adHoc(`INSERT INTO members (account, member, role, name, created_at)
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MEMBERS_MAX - 1})
  SELECT $1, 'tollgate:local:m' || i, 'owner', 'x', 1 FROM n`);

it.each(ENGINES)('an account gets no more than its number of members, also all at once: %s', async (engine) => {
  const database = await openTestDatabase(engine);
  const keys = createKeyStore(database, { now });
  const limits = createLimitsStore(database, { now });
  const members = createMemberStore(database, { keys, limits, now });
  await database.query(FILL, [ORG]);
  const add = (member: string) => members.add({ account: ORG, member, role: 'member', name: 'x' });
  const all = await allAtOnce(database, 'members', (index) => add(`tollgate:local:late-${index}`));
  expect(all.filter((one) => one !== null)).toHaveLength(1);
  expect(await members.list(ORG)).toHaveLength(MEMBERS_MAX);
  expect(await add('tollgate:local:one-more')).toBeNull();
});
