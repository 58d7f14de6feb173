import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { ENDPOINTS, PEER, type PeerDoor } from './peers/routes.ts';
import { startPeerProvider, type PeerProvider } from './peers/peer-provider.ts';
import { peerServices } from './peers/services.ts';
import { startSpine, UNHURRIED, type Spine } from './support/spine.ts';

// A call above the price of its key waits for a person, whatever the primitive and whatever the route.

let provider: PeerProvider;
let spine: Spine;
beforeAll(async () => {
  provider = await startPeerProvider();
  spine = await startSpine({
    toml: `${UNHURRIED}${peerServices(provider)}
[[agents]]
name = "peer/lender"
display_name = "Peer: Lender"
provider_name = "Peer"
endpoint = "${provider.agentUrl}"
[agents.pricing]
per_call = 0.00005
nested_max = 0.05
`,
    env: { TOLLGATE_PUBLIC_URL: 'https://gateway.example' },
  });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await provider.close();
});

interface Shown {
  readonly id: string;
  readonly state: string;
  readonly highest_cost_usd: string;
  readonly preview: string;
  readonly call: string | null;
  readonly key: { readonly hash: string };
}

let tenants = 0;
/** An account with a key that asks, and a key without limits. */
async function account(name: string) {
  const owner = `${name}-${(tenants += 1)}`;
  const asking = await spine.tenant(owner, '1', { askAbove: 100n });
  const full = (await spine.app.keys.create({ account: asking.account, label: 'full', kind: 'live' }))!.text;
  const api = async (key: string, method: string, path: string, body?: object) => {
    const response = await fetch(spine.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as { data: never; error: { message: string } } };
  };
  return {
    ...asking,
    full,
    api,
    list: async (key = full) => (await api(key, 'GET', '/approvals')).body.data as readonly Shown[],
    decide: (id: string, decision: string, key = full) => api(key, 'POST', `/approvals/${id}`, { decision }),
    money: async () => spine.app.ledger.balance(escrowOf(asking.account)),
  };
}

const idIn = (raw: string) => /apr_[0-9a-f]{32}/.exec(raw)?.[0];

describe.each(ENDPOINTS)('$name', (door: PeerDoor) => {
  test('waits for a person, runs once when accepted, and then has to wait again', async () => {
    const { key, hash, list, decide, money } = await account('accepted');
    const [calls, before] = [provider.calls(), await money()];
    const text = `complete ${tenants}`;
    const call = () => door.call({ origin: spine.origin, key, text });
    const waiting = await call();
    expect(waiting.kind).not.toBe('answered');
    expect(waiting.raw).toContain('a person has to accept it first');
    expect(waiting.raw).toContain('https://gateway.example/dashboard/approvals?id=apr_');
    expect(waiting.raw).toMatch(
      /until 20\d\d-.*also if your client has given up meanwhile \(many do after 3 or 4 minutes\)/,
    );
    expect(waiting.raw).toContain('approval');
    const id = idIn(waiting.raw)!;
    // A repeat waits for the same decision.
    expect(idIn((await call()).raw)).toBe(id);
    expect(await list()).toMatchObject([{ id, state: 'waiting', call: null, key: { hash } }]);
    expect((await list())[0]!.preview).toContain(text);
    expect([provider.calls(), await money()]).toEqual([calls, before]);

    // Whom the price is for decides nothing.
    expect((await decide(id, 'accept', key)).status).toBe(403);
    expect(await list(key)).toMatchObject([{ id, state: 'waiting' }]);

    expect(await decide(id, 'accept')).toMatchObject({ status: 200, body: { data: { id, state: 'accepted' } } });
    const answered = await call();
    expect(answered).toMatchObject({ kind: 'answered', said: expect.stringContaining('did complete') as string });
    await spine.quiet();
    const paid = before!.available - (await money())!.available;
    expect(paid).toBe(1_000n);
    expect(await list()).toMatchObject([{ id, state: 'used' }]);
    expect(await decide(id, 'refuse')).toMatchObject({ status: 422 });

    const again = await call();
    expect(again.kind).not.toBe('answered');
    expect(idIn(again.raw)).not.toBe(id);
    expect(before!.available - (await money())!.available).toBe(paid);
  });
});

test('an accepted request with other tags waits again, because tags say which budget is charged', async () => {
  const { key, decide, money } = await account('tagged');
  const before = await money();
  const callWith = async (tags: string | undefined) => {
    const response = await fetch(`${spine.url}/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(tags === undefined ? {} : { 'x-tollgate-tags': tags }),
      },
      body: JSON.stringify({ model: PEER, messages: [{ role: 'user', content: 'complete the same' }] }),
    });
    return { status: response.status, id: idIn(await response.text()) };
  };
  const { id } = await callWith('team=blue,feature=search');
  expect((await decide(id!, 'accept')).status).toBe(200);
  for (const other of ['team=red,feature=search', 'team=blue', undefined]) {
    const waiting = await callWith(other);
    expect(waiting.status).toBe(403);
    expect(waiting.id).not.toBe(id);
  }
  expect((await money())!.available).toBe(before!.available);
  // Their order says nothing.
  expect((await callWith('feature=search,team=blue')).status).toBe(200);
  await spine.quiet();
});

test('a refusal is told, and is for this request alone', async () => {
  const { key, decide } = await account('refused');
  const door = ENDPOINTS.find(({ name }) => name === 'chat')!;
  const call = (text: string) => door.call({ origin: spine.origin, key, text });
  const id = idIn((await call('complete one')).raw)!;
  expect((await decide(id, 'refuse')).status).toBe(200);
  expect((await call('complete one')).raw).toContain('A person has refused this call');
  expect((await call('complete two')).raw).toContain('a person has to accept it first');
});

test('with an idempotency key a further repeat gets the same answer', async () => {
  const { key, decide, money } = await account('kept');
  for (const name of ['chat', 'MCP']) {
    const door = ENDPOINTS.find((one) => one.name === name)!;
    const call = () => door.call({ origin: spine.origin, key, text: 'complete', once: `once-${name}` });
    await decide(idIn((await call()).raw)!, 'accept');
    const first = await call();
    expect(first.kind).toBe('answered');
    const { available } = (await money())!;
    expect(await call()).toMatchObject({ kind: 'answered', id: first.id });
    expect((await money())!.available).toBe(available);
  }
});

test('a call that failed leaves its approval for another try; one at the same time runs once', async () => {
  const { key, decide, money } = await account('tried');
  const door = ENDPOINTS.find(({ name }) => name === 'chat')!;
  const failing = () => door.call({ origin: spine.origin, key, text: 'error' });
  const id = idIn((await failing()).raw)!;
  await decide(id, 'accept');
  for (let i = 0; i < 2; i += 1) expect((await failing()).raw).not.toContain('a person has to accept');
  const { available } = (await money())!;

  const call = () => door.call({ origin: spine.origin, key, text: 'complete' });
  await decide(idIn((await call()).raw)!, 'accept');
  const outcomes = await Promise.all([call(), call(), call()]);
  expect(outcomes.filter(({ kind }) => kind === 'answered')).toHaveLength(1);
  await spine.quiet();
  expect(available - (await money())!.available).toBe(1_000n);
});

test('a quote of a call that waits is free for a call that asks nobody', async () => {
  const { key, full, api } = await account('quoted');
  const chat = { model: 'peer/all', max_tokens: 5_000, messages: [{ role: 'user', content: 'complete' }] };
  const given = (await api(key, 'POST', '/quotes', { primitive: 'model', ...chat })).body as unknown as {
    quote_id: string;
  };
  const call = (by: string) =>
    spine.post('/chat/completions', chat, { authorization: `Bearer ${by}`, 'x-quote-id': given.quote_id });
  const waiting = await call(key);
  expect([waiting.status, idIn(await waiting.text())]).toEqual([403, expect.any(String)]);
  const response = await call(full);
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('did complete')]);
});

test('what costs no more asks nobody', async () => {
  const { key, list } = await account('cheap');
  const response = await spine.post(
    '/chat/completions',
    { model: 'peer/all', max_tokens: 100, messages: [{ role: 'user', content: 'no-usage' }] },
    { authorization: `Bearer ${key}` },
  );
  expect(response.status).toBe(200);
  expect(await list()).toEqual([]);
});

test('what an agent may spend on calls of its own counts', async () => {
  const { key, list, money } = await account('lender');
  const before = await money();
  const send = async (id: string, headers: Readonly<Record<string, string>>) => {
    const response = await fetch(`${spine.origin}/a2a/peer/lender`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'message/send',
        params: { message: { kind: 'message', role: 'user', messageId: id, parts: [{ kind: 'text', text: id }] } },
      }),
    });
    return response.text();
  };
  // The price of the agent is below that of the key, and both together are above it.
  const raw = await send('complete lent', { 'x-max-cost': '0.01' });
  expect(raw).toContain('This call may cost 0.01 USDC, so a person has to accept it first');
  expect(await list()).toMatchObject([{ id: idIn(raw), state: 'waiting', highest_cost_usd: '0.01' }]);
  expect(await money()).toEqual(before);
  expect(await send('complete alone', { 'x-max-cost': '0.00005' })).toContain('did complete alone');
});

test('a key has a bounded number of calls that wait, and leaves some to the other keys of its account', async () => {
  const { key, api, list, account: owner } = await account('many');
  const chat = (text: string, by = key) =>
    api(by, 'POST', '/chat/completions', {
      model: 'peer/all',
      max_tokens: 5_000,
      messages: [{ role: 'user', content: text }],
    });
  for (let i = 0; i < 100; i += 1) expect((await chat(`complete ${i}`)).status).toBe(403);
  expect(await chat('complete 100')).toMatchObject({
    status: 429,
    body: { error: { message: 'Too many calls of this key, or of this account, wait to be accepted. Decide some' } },
  });
  // One of those that wait is told as before.
  expect((await chat('complete 7')).status).toBe(403);
  expect(await list()).toHaveLength(100);
  const fields = { account: owner, kind: 'live', askAbove: 100n } as const;
  for (const label of ['second', 'third']) {
    const { text } = (await spine.app.keys.create({ ...fields, label }))!;
    expect(await chat('complete 0', text)).toMatchObject({ status: 403, body: { error: { code: 403 } } });
  }
});
