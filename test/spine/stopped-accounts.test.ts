import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { startPeerProvider } from '../peers/peer-provider.ts';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, type Spine } from '../support/spine.ts';

const FROZEN =
  'This account is frozen by the operator of this gateway: it cannot make calls or withdraw. Ask the operator';
const CLOSED = 'This account is closed. Ask the operator of this gateway';

describe.each(ENGINES)('on %s', (engine) => {
  let spine: Spine;
  let second: Spine | null = null;
  let drop = async () => {};
  beforeAll(async () => {
    if (engine === 'postgres') {
      const fresh = await freshDatabase(inject('postgresUrl'));
      drop = fresh.drop;
      spine = await startSpine({ databaseUrl: fresh.url });
      second = await startSpine({ databaseUrl: fresh.url, credit: '0' });
    } else spine = await startSpine();
  });
  afterAll(async () => {
    await second?.stop();
    await spine.stop();
    await drop();
  });

  const admin = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${spine.origin}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${spine.adminKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return {
      status: response.status,
      body: (await response.json()) as { data: Record<string, unknown>; error: unknown },
    };
  };
  const act = (account: string, what: string, body: object = { reason: 'a test' }) =>
    admin('POST', `/accounts/${encodeURIComponent(account)}/${what}`, body);
  const customer = async (name: string, usd: string) => {
    await admin('POST', '/accounts', { name });
    return spine.tenant(name, usd);
  };
  const chat = (key: string, at: Spine = spine) =>
    at.post('/chat/completions', ask('hi !tokens:1'), { authorization: `Bearer ${key}` });

  it('a frozen account makes no new call, and its running call ends and is charged', async () => {
    const { account, key } = await customer('frozen', '1');
    expect((await chat(key)).status).toBe(200);
    const open = Promise.withResolvers<void>();
    spine.provider.hold(open.promise);
    const seen = spine.provider.log.length;
    const running = chat(key);
    while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));

    expect(await act(account, 'freeze', { reason: 'stolen key' })).toMatchObject({
      status: 200,
      body: { data: { state: 'frozen', state_reason: 'stolen key' } },
    });
    expect((await act(account, 'freeze')).body.data).toMatchObject({ state: 'frozen', state_reason: 'stolen key' });
    const refused = await chat(key);
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ error: { type: 'permission_denied', message: FROZEN } });
    const messages = await spine.post(
      '/messages',
      { model: ask('').model, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] },
      { authorization: `Bearer ${key}` },
    );
    expect(messages.status).toBe(403);
    expect(await messages.json()).toMatchObject({
      type: 'error',
      error: { type: 'permission_error', message: FROZEN },
    });
    const rpc = await fetch(`${spine.origin}/api/v1/rpc`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'chat/completions', params: ask('hi') }),
    });
    expect(JSON.stringify(await rpc.json())).toContain(FROZEN);
    expect((await spine.get('/session/balance', { authorization: `Bearer ${key}` })).status).toBe(200);

    open.resolve();
    spine.provider.hold(null);
    expect((await running).status).toBe(200);
    if (second !== null) {
      let status = 200;
      // The other gateway may know the old state for a second.
      while (status === 200) ({ status } = await chat(key, second));
      expect(status).toBe(403);
    }
    expect((await act(account, 'unfreeze')).body.data).toMatchObject({ state: 'open' });
    expect((await chat(key)).status).toBe(200);
    expect(await spine.faults()).toEqual([]);
  });

  it('a closed account says what became of its money, and is refused everywhere', async () => {
    const { account, key } = await customer('closing', '3.5');
    expect(await act(account, 'close')).toMatchObject({
      status: 422,
      body: { error: { message: 'Freeze the account before you close it, so that no new call begins' } },
    });
    await act(account, 'freeze');
    expect(await act(account, 'close')).toMatchObject({
      status: 422,
      body: { error: { message: expect.stringContaining('The account has 3.5 USD') as string, param: 'remainder' } },
    });
    const wrong = { reason: 'ended', remainder: 'paid_out', amount_usd: 3, reference: `wire-${engine}` };
    expect(await act(account, 'close', wrong)).toMatchObject({ status: 422, body: { error: { param: 'amount_usd' } } });
    const right = { ...wrong, amount_usd: 3.5 };
    const closed = { status: 200, body: { data: { state: 'closed', balance_usd: '0', state_reason: 'ended' } } };
    expect(await act(account, 'close', right)).toMatchObject(closed);
    expect(await act(account, 'close', right)).toMatchObject(closed);
    expect((await chat(key)).status).toBe(401);
    expect(await act(account, 'unfreeze')).toMatchObject({ status: 422 });

    // A key that somebody makes now is of no use. Money that arrives is not lost, and the list shows it.
    expect(await act(account, 'keys', { name: 'late' })).toMatchObject({
      status: 201,
      body: { warnings: ['The account is closed: the key is refused until the account is reopened'] },
    });
    const again = await spine.tenant('closing', '0');
    await act(account, 'credit', { amount_usd: 2, reference: `late-${engine}` });
    const answer = await spine.get('/session/balance', { authorization: `Bearer ${again.key}` });
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ error: { message: CLOSED } });
    expect((await admin('GET', '/accounts?state=closed')).body.data).toMatchObject([
      { id: account, balance_usd: '2', state: 'closed' },
    ]);
    expect((await act(account, 'reopen')).body.data).toMatchObject({ state: 'open' });
    expect((await chat(again.key)).status).toBe(200);
    expect(await spine.faults()).toEqual([]);
  });

  it('a wrong account id is told with its right forms, and a used reference with what it was used for', async () => {
    const key = `eip155:8453:0x${'aB'.repeat(20)}`;
    for (const wrong of [key, 'eip155:8453:0x4512', 'EIP155:1:0x00', 'solana:mainnet:abc', 'tollgate:local:A'])
      expect.soft(await act(wrong, 'credit', { amount_usd: 1, reference: 'never' }), wrong).toMatchObject({
        status: 400,
        body: { error: { param: 'id', message: expect.stringContaining('with its checksum') as string } },
      });
    const { account } = await customer('referred', '0');
    const reference = `once-${engine}`;
    await act(account, 'credit', { amount_usd: 2, reference });
    expect(await act(account, 'credit', { amount_usd: 3, reference })).toMatchObject({
      status: 409,
      body: {
        error: {
          message: expect.stringMatching(/another credit: 2 USD from treasury:operator to \S+referred$/) as string,
        },
      },
    });
  });

  it('an account gets a new label, unless another account is called so', async () => {
    await admin('POST', '/accounts', { name: 'first', label: 'First Ltd' });
    await admin('POST', '/accounts', { name: 'other', label: 'Other Ltd' });
    const rename = (label: string) => admin('PATCH', '/accounts/tollgate:local:first', { label });
    expect(await rename('  Premier\u00a0 Ltd ')).toMatchObject({
      status: 200,
      body: { data: { label: 'Premier Ltd' } },
    });
    const taken = [
      'Other Ltd',
      'oTHER ltd',
      'Other',
      '\uff2fther Ltd',
      'tollgate:local:other',
      'Tollgate:Local:Nobody',
    ];
    const refused = { status: 422, body: { error: { param: 'label' } } };
    for (const label of taken) {
      expect.soft(await rename(label), label).toMatchObject(refused);
      expect.soft(await admin('POST', '/accounts', { name: 'third', label }), label).toMatchObject(refused);
    }
    expect(await admin('PATCH', '/accounts/tollgate:local:other', { label: 'Fourth' })).toMatchObject({ status: 200 });
    expect(await admin('POST', '/accounts', { name: 'fourth' })).toMatchObject(refused);
    const both = await Promise.all(
      ['fifth', 'sixth'].map((name) => admin('POST', '/accounts', { name, label: 'At Once' })),
    );
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 422]);
    // An account that exists is not made, so its creation with another label changes nothing.
    expect(await admin('POST', '/accounts', { name: 'first', label: 'Other Ltd' })).toMatchObject({ status: 200 });
    expect((await admin('GET', '/accounts/tollgate:local:first')).body.data).toMatchObject({ label: 'Premier Ltd' });
  });

  it('the names of any number of accounts are taken away, also out of the log of changes', async () => {
    const people = { 'p-1': 'Alice Example', 'p-2': 'Bob Example', 'p-3': 'Carol "C%" Example' };
    for (const [name, label] of Object.entries(people)) {
      await admin('POST', '/accounts', { label, name });
      await admin('PATCH', `/accounts/tollgate:local:${name}`, { label: `${label} Two` });
    }
    const logged = async () => JSON.stringify((await admin('GET', '/audit-log?limit=100')).body.data);
    const named = async (label: string) => (await logged()).includes(label);
    expect(await named('Alice Example Two')).toBe(true);
    for (const name of ['p-1', 'p-2'])
      expect(
        await admin('PATCH', `/accounts/${encodeURIComponent(`tollgate:local:${name}`)}`, { label: '' }),
      ).toMatchObject({ status: 200, body: { data: { label: '' } } });
    expect([await named('Alice'), await named('Bob'), await named('Carol')]).toEqual([false, false, true]);
    expect(await logged()).toContain(String.raw`{\"account\":\"tollgate:local:p-1\",\"label\":\"[removed]\"}`);
    // The label is free again.
    expect(await admin('POST', '/accounts', { name: 'p-4', label: 'Alice Example' })).toMatchObject({ status: 201 });
    expect(await admin('PATCH', '/accounts/tollgate:local:p-3', { label: ' ' })).toMatchObject({ status: 400 });
  });
});

it('a frozen account starts no run of a model with tools', async () => {
  const peer = await startPeerProvider();
  const spine = await startSpine({
    toml: `[[tools]]\nname = "peer/tools"\nendpoint = "${peer.toolUrl}"\n[tools.pricing]\nper_call = 0.01\n`,
  });
  try {
    const body = { ...ask('hi !tokens:1'), tools: [{ type: 'mcp', service: 'peer/tools' }] };
    expect((await spine.post('/chat/completions', body)).status).toBe(200);
    const response = await fetch(`${spine.origin}/admin/v1/accounts/${encodeURIComponent(spine.account)}/freeze`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ reason: 'a test' }),
    });
    expect(response.status).toBe(200);
    const refused = await spine.post('/chat/completions', body);
    expect([refused.status, await refused.json()]).toMatchObject([403, { error: { message: FROZEN } }]);
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await peer.close();
  }
});
