import { expect, test } from 'vitest';
import { LEGACY_RPC, refusalOf, RPC, useCallsWorld, WIRES } from './support/calls-world.ts';

const calls = useCallsWorld();

const post = (url: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${calls.world.spine.key}`, 'content-type': 'application/json', ...headers },
    body,
  });

// Spaces, orders, escapes and numbers that no parser gives back as they came.
const PARAMS = {
  '1.0':
    '{ "x-first" : 1.0 , "message":{"parts" : [ {"text":"task \\u0061\\/b","xPart":{"n":12345678901234567890,"e":1E+2,"z":-0}} ],"role":"ROLE_USER",\n"messageId":"raw-1.0", "xMessage":[null,{"__proto__":{"a":1}}]},"configuration":{"historyLength":5,"xConfiguration":true},"xParams":{"constructor":1}}',
  '0.3':
    '{ "x-first" : 1.0 , "message":{"parts" : [ {"kind":"text","text":"task \\u0061\\/b","xPart":{"n":12345678901234567890,"e":1E+2,"z":-0}} ],"role":"user","kind":"message",\n"messageId":"raw-0.3", "xMessage":[null,{"__proto__":{"a":1}}]},"configuration":{"historyLength":5,"xConfiguration":true},"xParams":{"constructor":1}}',
} as const;

test.each([RPC, LEGACY_RPC])(
  'of the same version, parameters reach the agent byte for byte: $name',
  async ({ version }) => {
    const { url, agent } = await calls.serve({ version: 'both' });
    const method = version === '1.0' ? 'SendMessage' : 'message/send';
    const reply = await post(
      url,
      `{"id":"x","jsonrpc":"2.0","params":${PARAMS[version]},"method":"${method}","extra":{"not":"ours"}}`,
      {
        'a2a-version': version,
      },
    );
    expect(reply.status, await reply.text()).toBe(200);
    const { body } = agent.asked.at(-1)!;
    const { id, ...envelope } = JSON.parse(body) as Record<string, unknown>;
    expect(body).toBe(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}","params":${PARAMS[version]}}`);
    expect(Object.keys(envelope)).toEqual(['jsonrpc', 'method', 'params']);
  },
);

test('with a run, all that stands there stays as it is, and the token is added', async () => {
  const { url, agent } = await calls.serve({}, { pricing: 'per_call = 0.001\nnested_max = 0.01' });
  const text = PARAMS['1.0'].replace('raw-1.0', 'raw-run');
  await post(url, `{"id":1,"jsonrpc":"2.0","method":"SendMessage","params":${text}}`, { 'a2a-version': '1.0' });
  const { body } = agent.asked.at(-1)!;
  const params = body.slice(body.indexOf('"params":') + '"params":'.length, -1);
  expect(params.replace(/,"metadata":\{"tollgate\/run":\{[^}]*\}\}/, '')).toBe(text);
  expect(params).toMatch(/"tollgate\/run":\{"token":"svc-run-v1-/);
});

const SECRETS: Readonly<Record<string, string>> = {
  cookie: 'session=canary-cookie',
  'x-forwarded-for': '203.0.113.77',
  'x-forwarded-host': 'canary.example',
  'x-forwarded-proto': 'https',
  forwarded: 'for=203.0.113.77',
  via: '1.1 canary',
  'x-real-ip': '203.0.113.77',
  'x-tollgate-internal': 'canary-internal',
  'x-api-key': 'canary-key',
  'x-payment': 'canary-payment',
  'proxy-authorization': 'Basic canary',
  'x-max-cost': '0.001',
  'tollgate-run': 'canary-run',
  'idempotency-key': 'canary-idempotency',
  origin: 'https://canary.example',
  referer: 'https://canary.example/page',
  'user-agent': 'canary-agent',
  'x-anything': 'canary-anything',
};
const MAY_COME = new Set([
  'a2a-version',
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'host',
  'keep-alive',
  'transfer-encoding',
  'x-request-id',
  'a2a-extensions',
  'x-a2a-extensions',
  'traceparent',
  'tracestate',
]);

test('nothing of the consumer reaches the agent but what it said: no credential, cookie, address or header of its own', async () => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const { key, account } = calls.world.spine;
  for (const wire of WIRES) {
    const talk = calls.talk(url, wire);
    const params = {
      message: {
        messageId: `headers ${wire.name}`,
        role: wire.version === '1.0' ? 'ROLE_USER' : 'user',
        parts: [{ kind: 'text', text: 'wait' }],
      },
    };
    if (wire.version === '1.0') delete (params.message.parts[0] as { kind?: string }).kind;
    for (const operation of ['SendMessage'] as const) {
      const configuration = wire.version === '1.0' ? { returnImmediately: true } : { blocking: false };
      const reply = await talk.call(
        operation,
        { ...params, configuration },
        { ...SECRETS, 'a2a-extensions': 'https://example.com/ext/v1' },
      );
      expect(refusalOf(reply), reply.text).toBeNull();
    }
    const id = await agent.waits();
    await talk.call('GetTask', { id }, SECRETS);
    await talk.call('CancelTask', { id }, SECRETS);
  }
  const asked = agent.received.filter(({ path }) => !path.startsWith('/.well-known/'));
  expect(asked.length).toBeGreaterThanOrEqual(12);
  for (const { headers, body, path } of asked) {
    const whole = JSON.stringify({ headers, body, path });
    expect(whole).not.toContain('canary');
    expect(whole).not.toContain('203.0.113.77');
    expect(whole).not.toContain(key);
    expect(whole).not.toContain(account);
    expect(Object.keys(headers).filter((name) => !MAY_COME.has(name))).toEqual([]);
  }
});

test('the token that its provider named goes to the agent, and no client sees it', async () => {
  const { url, agent } = await calls.serve({ bearer: 'agent-secret-canary' }, { apiKey: 'agent-secret-canary' });
  const reply = await calls.talk(url).sent('task x');
  expect(refusalOf(reply)).toBeNull();
  expect(agent.asked.at(-1)!.headers.authorization).toBe('Bearer agent-secret-canary');
  expect(reply.text).not.toContain('canary');
  expect(JSON.stringify([...reply.headers])).not.toContain('canary');
  const wrong = await calls.serve({ bearer: 'another' }, { apiKey: 'agent-secret-canary' });
  const refused = await calls.talk(wrong.url).sent('task x');
  expect(refused.status).not.toBe(401);
  expect(refusalOf(refused)?.message).toMatch(/failed/);
  expect(refused.headers.get('www-authenticate')).toBeNull();
  expect(calls.world.spine.logs.join('')).not.toContain('agent-secret-canary');
});
