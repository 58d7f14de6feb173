import { expect, test } from 'vitest';
import { ask } from '../../support/spine.ts';
import { AGENT, message, request, TOOL_COST, TOOLS, useRpcWorld } from './rpc-world.ts';

// A repeated entry answers the same and costs nothing more, by its own key.

const world = useRpcWorld();
const keyed = (key: string, params: object) => ({ ...params, _meta: { 'tollgate/idempotency-key': key } });

test('a batch that is sent again is charged once', async () => {
  const sent = message('echo hi');
  const entries = [
    request(1, 'chat/completions', keyed('a', ask('hello !tokens:3'))),
    request(2, 'tools/call', keyed('b', { service: TOOLS, name: 'test_simple_text', arguments: {} })),
    // A2A knows its messages by their ids.
    request(3, 'message/send', { agent: AGENT, message: sent }),
  ];
  const first = await world.batch(entries);
  expect(await world.charged(async () => expect(await world.batch(entries)).toEqual(first))).toBe(0n);
});

test('a key is of one body', async () => {
  await world.call('chat/completions', keyed('c', ask('one')));
  expect(await world.call('chat/completions', keyed('c', ask('two')))).toMatchObject({
    error: { code: -32014, data: { type: 'idempotency_conflict', param: 'Idempotency-Key', status: 409 } },
  });
});

test('the header is that of a single request; what is in _meta comes first', async () => {
  const call = () => world.post(request(1, 'chat/completions', ask('header')), { 'idempotency-key': 'h-1' });
  const first = await (await call()).text();
  const again = await call();
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(await again.text()).toBe(first);
  const other = await world.post(request(1, 'chat/completions', keyed('h-2', ask('header'))), {
    'idempotency-key': 'h-1',
  });
  expect(other.headers.get('idempotent-replayed')).toBeNull();
  const tool = request(1, 'tools/call', { service: TOOLS, name: 'test_simple_text', arguments: {} });
  const paid = await world.charged(async () => {
    for (let round = 0; round < 3; round += 1) await (await world.post(tool, { 'idempotency-key': 'h-3' })).text();
  });
  expect(paid).toBe(TOOL_COST);
});

test('the header over a batch is refused: it would be the key of several calls', async () => {
  const response = await world.post([request(1, 'chat/completions', ask('hello'))], { 'idempotency-key': 'x' });
  expect(await response.json()).toMatchObject({
    id: null,
    error: { code: -32600, message: expect.stringContaining('tollgate/idempotency-key') as string },
  });
});

test.each([7, '', 'x'.repeat(256), 'ü', 'a\r\nauthorization: x', null, {}])('is no key: %j', async (key) => {
  const params = { ...ask('hello'), _meta: { 'tollgate/idempotency-key': key } };
  expect(await world.call('chat/completions', params)).toMatchObject({
    error: { code: -32602, data: { type: 'invalid_request' } },
  });
});
