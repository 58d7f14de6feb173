import { expect, test } from 'vitest';
import { ask } from '../../support/spine.ts';
import { request, TOOLS, useRpcWorld } from './rpc-world.ts';

// What is public is answered to everybody. A batch that is not public must not become fifty looks at a credential
// that is not there.

const world = useRpcWorld();
const post = (body: unknown) =>
  fetch(`${world.spine.url}/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const OPEN = ['services/list', 'models/list', 'agents/list', 'providers/list', 'ping', 'rpc.discover'];
const CLOSED: readonly (readonly [string, object])[] = [
  ['account/balance', {}],
  ['account/key', {}],
  ['chat/completions', ask('hello')],
  ['tools/list', { service: TOOLS }],
  ['tools/call', { service: TOOLS, name: 'test_simple_text' }],
  ['message/send', {}],
  ['tasks/list', {}],
  ['generation/get', { id: 'x' }],
];

test('what is public is answered, alone and in a batch', async () => {
  for (const method of OPEN) expect(await (await post(request(1, method))).json()).toHaveProperty('result');
  const replies = (await (await post(OPEN.map((method, id) => request(id, method)))).json()) as object[];
  for (const reply of replies) expect(reply).toHaveProperty('result');
  expect(replies).toHaveLength(OPEN.length);
});

test.each(CLOSED)('%s is refused by its own door', async (method, params) => {
  const response = await post(request(1, method, params));
  expect(response.status).toBe(401);
  expect(response.headers.get('www-authenticate')).not.toBeNull();
  expect(await response.json()).toMatchObject({ id: 1, error: { code: -32010 } });
});

test.each(CLOSED)('a batch with %s in it is refused as a whole, and nothing of it is asked', async (method, params) => {
  const response = await post([request(1, 'ping'), request(2, method, params)]);
  expect(response.status).toBe(401);
  expect(response.headers.get('www-authenticate')).toBe('Bearer, SIWx');
  expect(await response.json()).toMatchObject({
    id: null,
    error: { code: -32010, data: { type: 'unauthorized', status: 401 } },
  });
});

test('a batch of notifications and of what is no method needs nobody', async () => {
  expect((await post([{ jsonrpc: '2.0', method: 'chat/completions', params: ask('hello') }])).status).toBe(204);
  expect(await (await post([request(1, 'no/such')])).json()).toMatchObject([{ id: 1, error: { code: -32601 } }]);
});

test('a wallet signs in where a key would', async () => {
  const response = await fetch(`${world.spine.url}/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'sign-in-with-x': 'bm90aGluZw' },
    body: JSON.stringify([request(1, 'account/balance')]),
  });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject([
    { id: 1, error: { code: -32010, message: expect.stringContaining('sign-in header') as string } },
  ]);
});
