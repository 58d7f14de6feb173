import { describe, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { ENDPOINTS } from '../peers/routes.ts';
import { peerServices } from '../peers/services.ts';
import { startPeerProvider } from '../peers/peer-provider.ts';
import { startScriptedModel } from '../gateway/bridge/chat/support/scripted-model.ts';
import { modelToml } from '../gateway/bridge/chat/support/toml.ts';
import { UNHURRIED } from '../support/spine.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// An administrator ends a call that runs. Its client gets an error in the form of its route, and nobody pays.

const provider = ofFile(startPeerProvider, (one) => one.close());
const model = ofFile(startScriptedModel, (one) => one.stop());
const spine = spineOfFile(() => ({ toml: UNHURRIED + peerServices(provider) + modelToml(model.url, 'scripted') }));

interface Shown {
  readonly id: string;
  readonly state: string;
  readonly cost_micro_usdc: number;
  readonly error: string | null;
  readonly parent: string | null;
}

async function admin(method: 'GET' | 'POST', path: string, body?: object) {
  const response = await fetch(`${spine.origin}/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${spine.adminKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as { data: Shown; error: { message: string } } };
}

async function calls(key: string): Promise<readonly Shown[]> {
  const found = await spine.get('/generations', { authorization: `Bearer ${key}` });
  return ((await found.json()) as { data: readonly Shown[] }).data;
}

let tenants = 0;
/** An account of its own, and one call of it that its provider does not answer. */
async function begin(call: (of: { origin: string; key: string; text: string }) => Promise<unknown>) {
  const text = `hang ${(tenants += 1)}`;
  const { account, key } = await spine.tenant(`ended-${tenants}`, '1');
  const came = provider.came(text);
  const calling = call({ origin: spine.origin, key, text });
  await came;
  const [running] = await calls(key);
  return { account, key, id: running!.id, calling };
}

const untouched = async (account: string) =>
  expect(await spine.app.ledger.balance(escrowOf(account))).toEqual({ available: 1_000_000n, locked: 0n });

describe.each(ENDPOINTS)('$name', (door) => {
  test('the client is told who ended its call and why, and pays nothing', async () => {
    const { account, key, id, calling } = await begin((one) => door.call(one));
    const ended = await admin('POST', `/calls/${id}/end`, { reason: 'it hung' });
    expect(ended.body).toMatchObject({
      data: { id, state: 'released', cost_micro_usdc: 0, error: expect.stringContaining('it hung') as string },
    });
    const outcome = (await calling) as { kind: string; raw: string };
    expect(outcome.kind).toBe('failed');
    expect(outcome.raw).toContain('The operator of this gateway ended the call: it hung');
    expect(outcome.raw).not.toContain('root');
    await untouched(account);
    expect(await calls(key)).toMatchObject([{ id, state: 'released' }]);
    expect(await spine.faults()).toEqual([]);
  });
});

test('the log and the log of changes name who ended it, and its provider has not failed', async () => {
  const { id, calling } = await begin((one) => ENDPOINTS[0]!.call(one));
  await admin('POST', `/calls/${id}/end`);
  await calling;
  const lines = spine.logs.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: 'an administrator ended a call', generation: id, administrator: 'root' }),
  );
  expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
  const { body } = await admin('GET', '/audit-log');
  expect(body.data).toContainEqual(
    expect.objectContaining({ path: `/admin/v1/calls/${id}/end`, actor: 'root', status: 200 }),
  );
  const { data } = (await (await spine.get('/providers')).json()) as { data: { uptime: number | null }[] };
  expect(data.filter(({ uptime }) => uptime !== null && uptime < 1)).toEqual([]);
});

test.each([
  ['/chat/completions', (text: string) => ({ messages: [{ role: 'user', content: text }] })],
  ['/messages', (text: string) => ({ max_tokens: 50, messages: [{ role: 'user', content: text }] })],
  ['/responses', (text: string) => ({ input: text })],
])('a stream of %s ends with the error', async (path, asked) => {
  const { account, id, calling } = await begin(async ({ key, text }) => {
    const response = await spine.post(
      path,
      { model: 'peer/all', stream: true, ...asked(text) },
      { authorization: `Bearer ${key}` },
    );
    return response.text();
  });
  await admin('POST', `/calls/${id}/end`, { reason: 'it hung' });
  expect(await calling).toContain('ended the call: it hung');
  await untouched(account);
  expect(await spine.faults()).toEqual([]);
});

test('a chat that uses tools ends with the tool that runs, and what its turns had cost stays charged', async () => {
  model.says((asked) => ({
    calls: [{ name: asked.tools![0]!.function.name, args: { text: asked.messages[0]!.content } }],
  }));
  const { account, key, calling } = await begin(async ({ key: own, text }) => {
    const tools = [{ type: 'mcp', service: 'peer/all' }];
    const body = { model: 'scripted', max_tokens: 50, tools, messages: [{ role: 'user', content: text }] };
    return (await spine.post('/chat/completions', body, { authorization: `Bearer ${own}` })).text();
  });
  const run = (await calls(key)).find(({ parent }) => parent === null)!;
  const asked = model.asked.length;
  expect((await admin('POST', `/calls/${run.id}/end`)).status).toBe(200);
  const { usage, tollgate } = JSON.parse((await calling) as string) as {
    usage: { cost: number };
    tollgate: { note: { type: string } };
  };
  expect(tollgate.note.type).toBe('call_ended');
  expect(model.asked.length).toBe(asked);
  const charged = BigInt(Math.round(usage.cost * 1e6));
  expect(charged).toBeGreaterThan(0n);
  expect(await spine.app.ledger.balance(escrowOf(account))).toEqual({ available: 1_000_000n - charged, locked: 0n });
  expect(await spine.faults()).toEqual([]);
});

test('SDKs do not repeat it', async () => {
  const { id, calling } = await begin(({ key, text }) =>
    spine.post(
      '/chat/completions',
      { model: 'peer/all', messages: [{ role: 'user', content: text }] },
      { authorization: `Bearer ${key}` },
    ),
  );
  await admin('POST', `/calls/${id}/end`);
  const response = (await calling) as Response;
  expect([response.status, response.headers.get('x-should-retry')]).toEqual([409, 'false']);
  expect(await response.json()).toMatchObject({ error: { code: 409, type: 'call_ended' } });
});

test('a call that has ended, or never was, is not ended', async () => {
  const { id, calling } = await begin((one) => ENDPOINTS[0]!.call(one));
  expect((await admin('POST', `/calls/${id}/end`)).status).toBe(200);
  await calling;
  const again = await admin('POST', `/calls/${id}/end`);
  expect([again.status, again.body.error.message]).toEqual([422, 'The call has ended already']);
  expect((await admin('POST', '/calls/gen-nothing/end')).status).toBe(404);
});
