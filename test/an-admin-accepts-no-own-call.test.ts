import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { startPeerProvider, type PeerProvider } from './peers/peer-provider.ts';
import { ENDPOINTS } from './peers/routes.ts';
import { peerServices } from './peers/services.ts';
import { startSpine, UNHURRIED, type Spine } from './support/spine.ts';

// Two people decide about the money of an organisation: whoever it has limited by `ask_above` accepts no own call.

let provider: PeerProvider;
let spine: Spine;
beforeAll(async () => {
  provider = await startPeerProvider();
  spine = await startSpine({ toml: UNHURRIED + peerServices(provider) });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await provider.close();
});

async function api(key: string, method: string, path: string, body: object, of: string) {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    ...(of === '' ? {} : { 'x-tollgate-account': of }),
  };
  const response = await fetch(spine.url + path, { method, headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

/** An organisation with money, and people in it who each have a key of it. */
async function organisation(name: string, people: Readonly<Record<string, string>>) {
  const owner = await spine.tenant(`${name}-founder`, '0');
  const made = await api(owner.key, 'POST', '/organisations', { label: name }, '');
  const { account } = (JSON.parse(made.text) as { data: { account: string } }).data;
  const fund = { id: `fund-${name}`, from: treasuryOf('operator'), to: escrowOf(account), amount: 100_000n, memo: '' };
  await spine.app.ledger.transfer(fund);
  const founder = { ...owner, path: `/members/${encodeURIComponent(owner.account)}` };
  const persons: Record<string, { key: string; path: string }> = { founder };
  for (const [person, role] of Object.entries(people)) {
    const { key, account: member } = await spine.tenant(`${name}-${person}`, '0');
    expect((await api(owner.key, 'POST', '/members', { account: member, role }, account)).status).toBe(201);
    persons[person] = { key, path: `/members/${encodeURIComponent(member)}` };
  }
  return {
    account,
    add: (by: string, member: string, role: string) =>
      api(persons[by]!.key, 'POST', '/members', { account: member, role }, account),
    change: (person: string, by: string, changes: object) =>
      api(persons[by]!.key, 'PATCH', persons[person]!.path, changes, account),
    /** A key of a person for calls of the organisation. */
    async key(person: string, rules: object = {}) {
      const { text } = await api(persons[person]!.key, 'POST', '/keys', rules, account);
      return (JSON.parse(text) as { key: string }).key;
    },
    decide: (person: string, id: string, decision: string) =>
      api(persons[person]!.key, 'POST', `/approvals/${id}`, { decision }, account),
    available: async () => (await spine.app.ledger.balance(escrowOf(account)))!.available,
  };
}

const { call } = ENDPOINTS.find(({ name }) => name === 'chat')!;
const ask = (key: string, text: string) => call({ origin: spine.origin, key, text: `complete ${text}` });
const idIn = (raw: string): string => /apr_[0-9a-f]{32}/.exec(raw)![0];

describe('an admin with a price above which another person is asked', () => {
  test('accepts none of their own calls, and another admin does', async () => {
    const acme = await organisation('acme', { ada: 'admin', ben: 'admin' });
    expect((await acme.change('ada', 'founder', { ask_above: 0.0001 })).status).toBe(200);
    const key = await acme.key('ada');
    const before = await acme.available();
    const id = idIn((await ask(key, 'first')).raw);
    const own = await acme.decide('ada', id, 'accept');
    expect(own.status).toBe(403);
    expect(own.text).toContain('You cannot accept your own calls');
    expect((await ask(key, 'first')).kind).not.toBe('answered');
    expect(await acme.available()).toBe(before);
    expect((await acme.decide('ben', id, 'accept')).status).toBe(200);
    expect((await ask(key, 'first')).kind).toBe('answered');
  });

  test('neither lifts the price nor a new key of theirs passes it', async () => {
    const acme = await organisation('lifts', { ada: 'admin' });
    await acme.change('ada', 'founder', { ask_above: 0.0001 });
    expect((await acme.change('ada', 'ada', { ask_above: null })).status).toBe(403);
    const id = idIn((await ask(await acme.key('ada'), 'second')).raw);
    expect((await acme.decide('ada', id, 'accept')).status).toBe(403);
  });

  test.each([
    ['a price', { ask_above: 0.0001 }],
    ['services', { allowed_services: ['other'] }],
    ['a budget', { budgets: [{ limit: 1 }] }],
    ['tags', { tags: { team: 'a' } }],
  ])('who is limited by %s adds and raises no second account', async (name, rule) => {
    const acme = await organisation(`second-${name.replace(' ', '-')}`, { ada: 'admin', own: 'viewer', eve: 'member' });
    await acme.change('ada', 'founder', rule);
    const second = await spine.tenant(`account-of-${name.replace(' ', '-')}`, '0');
    for (const role of ['viewer', 'member', 'admin'])
      expect(await acme.add('ada', second.account, role)).toMatchObject({
        status: 403,
        text: expect.stringContaining('You have budgets or rules as a member') as string,
      });
    expect((await acme.change('own', 'ada', { role: 'admin' })).status).toBe(403);
    expect((await acme.change('eve', 'ada', { ask_above: null })).status).toBe(403);
    expect((await acme.change('eve', 'ada', { name: 'Eve' })).status).toBe(200);
    // An owner takes the limits away, and then it works.
    const none = Object.fromEntries(Object.keys(rule).map((field) => [field, field === 'budgets' ? [] : null]));
    await acme.change('ada', 'founder', none);
    expect((await acme.add('ada', second.account, 'admin')).status).toBe(201);
  });

  test('refuses an own call, and accepts those of others', async () => {
    const acme = await organisation('others', { ada: 'admin', eve: 'member' });
    for (const person of ['ada', 'eve']) await acme.change(person, 'founder', { ask_above: 0.0001 });
    const [ada, eve] = [await acme.key('ada'), await acme.key('eve')];
    expect((await acme.decide('ada', idIn((await ask(ada, 'third')).raw), 'refuse')).status).toBe(200);
    expect((await acme.decide('ada', idIn((await ask(eve, 'fourth')).raw), 'accept')).status).toBe(200);
    expect((await ask(eve, 'fourth')).kind).toBe('answered');
  });
});

test('an admin accepts what an own key asks that only the admin has limited', async () => {
  const acme = await organisation('agent', { ada: 'admin' });
  const key = await acme.key('ada', { ask_above: 0.0001 });
  expect((await acme.decide('ada', idIn((await ask(key, 'fifth')).raw), 'accept')).status).toBe(200);
  expect((await ask(key, 'fifth')).kind).toBe('answered');
});

test('an owner accepts their own calls: the money is theirs', async () => {
  const acme = await organisation('lone', {});
  expect((await acme.change('founder', 'founder', { ask_above: 0.0001 })).status).toBe(200);
  const key = await acme.key('founder');
  expect((await acme.decide('founder', idIn((await ask(key, 'sixth')).raw), 'accept')).status).toBe(200);
  expect((await ask(key, 'sixth')).kind).toBe('answered');
});
