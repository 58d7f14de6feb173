import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { grantsOf } from './gateway/authorization/support/grants.ts';
import { A_BUDGET, createPerson } from './gateway/authorization/support/person.ts';
import { registerRaw } from './gateway/authorization/support/raw-client.ts';
import { startPeerProvider, type PeerProvider } from './peers/peer-provider.ts';
import { ENDPOINTS } from './peers/routes.ts';
import { peerServices } from './peers/services.ts';
import { startSpine, UNHURRIED, type Spine } from './support/spine.ts';

// A program that signed in, and a member of an organisation, may have a price above which a person is asked too.

let provider: PeerProvider;
let spine: Spine;
beforeAll(async () => {
  provider = await startPeerProvider();
  spine = await startSpine({ mode: 'development', toml: UNHURRIED + peerServices(provider) });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await provider.close();
});

async function api(key: string, method: string, path: string, body?: object, of?: string) {
  const response = await fetch(spine.url + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(of === undefined ? {} : { 'x-tollgate-account': of }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, never> };
}

/** Whose calls wait, and who decides about them. */
interface Holder {
  /** What it sends as its bearer token. */
  readonly token: string;
  /** Who pays. */
  readonly account: string;
  readonly decide: (id: string, decision: string) => Promise<{ readonly status: number }>;
}

const HOLDERS: Readonly<Record<string, () => Promise<Holder>>> = {
  async 'a grant, from its consent on'() {
    const client = await registerRaw(spine.origin, { resource: spine.origin });
    const limits = { ...A_BUDGET, ask_above: 0.0001 };
    const { access_token: token } = await client.signIn(createPerson(spine.origin, spine.key), { limits });
    const decide: Holder['decide'] = (id, decision) => api(spine.key, 'POST', `/approvals/${id}`, { decision });
    return { token, account: spine.account, decide };
  },
  async 'a grant whose owner changes it'() {
    const client = await registerRaw(spine.origin, { resource: spine.origin });
    const { access_token: token } = await client.signIn(createPerson(spine.origin, spine.key));
    const { hash } = (await grantsOf(spine)).at(-1)!;
    expect((await api(spine.key, 'PATCH', `/keys/${hash}`, { ask_above: 0.0001 })).status).toBe(200);
    const decide: Holder['decide'] = (id, decision) => api(spine.key, 'POST', `/approvals/${id}`, { decision });
    return { token, account: spine.account, decide };
  },
  async 'a member'() {
    const [owner, member] = [await spine.tenant('owner', '0'), await spine.tenant('member', '0')];
    const made = await api(owner.key, 'POST', '/organisations', { label: 'Acme' });
    const { account } = made.body['data']! as { account: string };
    const fund = { id: 'fund', from: treasuryOf('operator'), to: escrowOf(account), amount: 1_000_000n, memo: '' };
    await spine.app.ledger.transfer(fund);
    await api(owner.key, 'POST', '/members', { account: member.account, role: 'member' }, account);
    const path = `/members/${encodeURIComponent(member.account)}`;
    expect((await api(owner.key, 'PATCH', path, { ask_above: 0.0001 }, account)).status).toBe(200);
    const token = (await api(member.key, 'POST', '/keys', {}, account)).body['key'] as unknown as string;
    const decide: Holder['decide'] = (id, decision) =>
      api(owner.key, 'POST', `/approvals/${id}`, { decision }, account);
    return { token, account, decide };
  },
};

const DOORS = ['chat', 'messages', 'responses', 'chat in a stream', 'A2A', 'MCP', 'an agent as an MCP tool'];
const idIn = (raw: string) => /apr_[0-9a-f]{32}/.exec(raw)?.[0];

describe.each(Object.entries(HOLDERS))('%s', (name, hold) => {
  let holder: Holder;
  beforeAll(async () => {
    holder = await hold();
  });
  const money = async () => {
    await spine.quiet();
    return (await spine.app.ledger.balance(escrowOf(holder.account)))!.available;
  };

  test.each(DOORS)('%s', async (door) => {
    const { call } = ENDPOINTS.find((one) => one.name === door)!;
    const say = (text: string) => call({ origin: spine.origin, key: holder.token, text: `complete ${text} ${name}` });
    const before = await money();
    const waiting = await say('one');
    expect(waiting.raw).toMatch(
      /a person has to accept it first.*http:\/\/127\.0\.0\.1:\d+\/dashboard\/approvals\?id=apr_/s,
    );
    const id = idIn(waiting.raw)!;
    // Who asks cannot decide.
    expect((await api(holder.token, 'POST', `/approvals/${id}`, { decision: 'accept' })).status).toBe(403);
    expect((await holder.decide(id, 'accept')).status).toBe(200);

    // What was accepted is this request, and no other.
    const other = await say('another');
    expect(other.kind).not.toBe('answered');
    expect((await holder.decide(idIn(other.raw)!, 'refuse')).status).toBe(200);
    expect((await say('another')).raw).toContain('A person has refused this call');
    expect(await money()).toBe(before);
    expect(await say('one')).toMatchObject({
      kind: 'answered',
      said: expect.stringContaining('did complete') as string,
    });
    expect(before - (await money())).toBe(1_000n);
    expect((await say('one')).kind).not.toBe('answered');
  });
});

test('members who cannot decide read only what their own keys ask', async () => {
  const names = ['owner-of-previews', 'asks', 'looks', 'decides'] as const;
  const [owner, asks, looks, decides] = await Promise.all(names.map((name) => spine.tenant(name, '0')));
  const made = await api(owner!.key, 'POST', '/organisations', { label: 'Previews' });
  const { account } = made.body['data']! as { account: string };
  const fund = {
    id: 'fund previews',
    from: treasuryOf('operator'),
    to: escrowOf(account),
    amount: 1_000_000n,
    memo: '',
  };
  await spine.app.ledger.transfer(fund);
  for (const [person, role] of [
    [asks, 'member'],
    [looks, 'viewer'],
    [decides, 'admin'],
  ] as const)
    await api(owner!.key, 'POST', '/members', { account: person!.account, role }, account);
  const { key } = (await api(asks!.key, 'POST', '/keys', { ask_above: 0 }, account)).body as { key?: string };
  const { call } = ENDPOINTS.find((one) => one.name === 'chat')!;
  expect((await call({ origin: spine.origin, key: key!, text: 'complete a secret' })).raw).toContain('apr_');
  const previews = async (by: typeof owner) => {
    const { data } = (await api(by!.key, 'GET', '/approvals', undefined, account)).body as {
      data?: readonly { readonly preview: string | null; readonly digest: string }[];
    };
    return data!.map(({ preview }) => preview?.includes('a secret') ?? null);
  };
  expect(await Promise.all([owner, decides, asks, looks].map(previews))).toEqual([[true], [true], [true], [null]]);
});
