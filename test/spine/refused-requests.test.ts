import { expect, it } from 'vitest';
import { ask } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// Why the requests of a customer fail before they become calls, for its operator and for itself.

const PER_MINUTE = 4;
const spine = spineOfFile(() => ({
  // It stands still: a rate gives nothing back while a slow machine asks.
  elapsed: () => 0,
  toml: `[limits]\nrequests_per_minute = ${PER_MINUTE}\nburst = 0\n`,
}));

interface Row {
  readonly code: string;
  readonly requests: number;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const rowsAt = async (path: string, key: string): Promise<readonly Row[]> => {
  const answer = await fetch(spine.origin + path, { headers: bearer(key) });
  return ((await answer.json()) as { readonly data: readonly Row[] }).data;
};
const refusals = (account: string) =>
  rowsAt(`/admin/v1/accounts/${encodeURIComponent(account)}/refusals`, spine.adminKey);
const message = (text: string) => ({
  message: { kind: 'message', messageId: text, role: 'user', parts: [{ kind: 'text', text }] },
});
const rpc = async (key: string, path: string, method: string, params: object): Promise<string> => {
  const answer = await fetch(spine.origin + path, {
    method: 'POST',
    headers: {
      ...bearer(key),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return answer.text();
};
const chat = (key: string, body: object = ask('hi !tokens:1')) => spine.post('/chat/completions', body, bearer(key));

it('a customer without money, and one with a wrong name or body', async () => {
  const { account, key, hash } = await spine.tenant('poor', '0.000001');
  expect((await chat(key)).status).toBe(402);
  expect((await chat(key)).status).toBe(402);
  expect((await chat(key, ask('hi', { model: 'no/such' }))).status).toBe(404);
  expect((await chat(key, { model: 'test/model' })).status).toBe(400);
  const common = { key: 'poor', api_key: hash, first_at: expect.any(String) as string };
  expect(await refusals(account)).toMatchObject([
    { ...common, code: 'invalid_request', status: 400, target: 'POST /api/v1/chat/completions', requests: 1 },
    { ...common, code: 'invalid_model', status: 404, target: 'POST /api/v1/chat/completions', requests: 1 },
    {
      ...common,
      code: 'insufficient_balance',
      status: 402,
      target: 'test/model',
      requests: 2,
      message: expect.stringContaining('balance') as string,
      request_id: expect.stringMatching(/^req-/) as string,
    },
  ]);
});

it('each reason of one error has its count, whatever the amounts in it; and the answer says since when', async () => {
  const { account, key } = await spine.tenant('many-reasons', '0.000001');
  for (const most of [20, 40]) expect((await chat(key, ask('hi', { max_tokens: most }))).status).toBe(402);
  const { key: other, account: wrong } = await spine.tenant('wrong-bodies', '1');
  for (const body of [{ model: 'test/model' }, { model: 'test/model', messages: 'hi' }, { model: 'test/model' }])
    expect((await chat(other, body)).status).toBe(400);
  const [poor] = await refusals(account);
  expect(poor).toMatchObject({ requests: 2, reasons: [{ requests: 2 }] });
  const [bad] = await refusals(wrong);
  expect(bad).toMatchObject({
    code: 'invalid_request',
    requests: 3,
    reasons: [{ requests: 2 }, { requests: 1, message: expect.stringMatching(/^messages must be an array/) as string }],
  });
  for (const [path, asker] of [
    [`/admin/v1/accounts/${encodeURIComponent(wrong)}/refusals`, spine.adminKey],
    ['/api/v1/refusals', other],
  ] as const) {
    const { since } = (await (await fetch(spine.origin + path, { headers: bearer(asker) })).json()) as {
      readonly since: string;
    };
    expect(Date.parse(since)).toBeGreaterThan(Date.now() - 3_600_000);
    expect(Date.parse(since)).toBeLessThan(Date.now());
  }
});

it('a customer at its rate: the message says whose it is, and others are not there', async () => {
  const { account, key } = await spine.tenant('fast', '1');
  for (let sent = 0; sent < PER_MINUTE; sent += 1) expect((await chat(key)).status).toBe(200);
  for (let sent = 0; sent < 30; sent += 1) expect((await chat(key)).status).toBe(429);
  expect(await refusals(account)).toMatchObject([
    {
      code: 'rate_limit_exceeded',
      status: 429,
      target: 'POST /api/v1/chat/completions',
      requests: 30,
      message: expect.stringMatching(/^Rate limit of 4 requests per minute of this key exceeded/) as string,
    },
  ]);
});

it('calls with a record are not among them, whoever answers them', async () => {
  const { account, key } = await spine.tenant('unlucky', '1');
  expect((await chat(key, ask('!status:500'))).status).toBe(500);
  const text = '!status:500';
  const tool = { name: 'ask_model', arguments: { model: 'test/model', prompt: text } };
  expect(await rpc(key, '/mcp', 'tools/call', tool)).toContain('it answered with status 500');
  expect(await rpc(key, '/a2a/model/test/model', 'message/send', message(text))).toContain('"error"');
  expect(await refusals(account)).toEqual([]);
  expect(await rowsAt('/api/v1/generations', key)).toHaveLength(3);
});

it('the words of a request are not kept', async () => {
  const { account, key } = await spine.tenant('private', '1');
  const { error } = (await (await chat(key, { model: 'test/model', messages: 'my diagnosis' })).json()) as {
    readonly error: { readonly message: string };
  };
  expect(error.message).toContain('my diagnosis');
  const rows = await refusals(account);
  expect(rows).toMatchObject([
    { code: 'invalid_request', message: expect.stringMatching(/^messages must be an array of [^"]*$/) as string },
  ]);
  expect(JSON.stringify(rows)).not.toContain('diagnosis');
});

it('MCP and A2A, which answer errors in their own form', async () => {
  const { account, key } = await spine.tenant('agent', '1');
  await rpc(key, '/mcp', 'tools/call', { name: 'ask_model', arguments: { model: 'no/such', prompt: 'hi' } });
  await rpc(key, '/a2a/no/such', 'message/send', message('hi'));
  await rpc(key, '/a2a/model/test/model', 'tasks/get', { id: 'unknown' });
  await rpc(key, '/mcp', 'tools/call', [1]);
  expect(await refusals(account)).toMatchObject([
    { code: 'invalid_request', status: 400, target: 'MCP' },
    { code: 'not_found', status: 404, target: 'A2A model/test/model' },
    { code: 'invalid_model', target: 'A2A no/such' },
    { code: 'invalid_model', target: 'MCP model/no/such' },
  ]);
});

it('a customer sees its own, and a restricted key only those by it', async () => {
  const { account, key } = await spine.tenant('two-keys', '0');
  const limited = (await spine.app.keys.create({
    account,
    label: 'limited',
    kind: 'live',
    expiresAt: Date.now() + 1e9,
  }))!;
  await chat(key);
  await chat(limited.text, ask('hi', { model: 'no/such' }));
  const codes = (rows: readonly Row[]) => rows.map(({ code }) => code);
  expect(codes(await rowsAt('/api/v1/refusals', key))).toEqual(['invalid_model', 'escrow_not_setup']);
  expect(codes(await rowsAt('/api/v1/refusals', limited.text))).toEqual(['invalid_model']);
});
