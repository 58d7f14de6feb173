import { expect, test } from 'vitest';
import { startSpine } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';
import { json, startScripted } from './scripted-server.ts';

const call = (id: number, name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});

test('each message of a batch is a request of its own, in the log and among refusals', async () => {
  const server = await startScripted({
    answer({ message }, response) {
      if (message.method !== 'tools/call') return undefined;
      if (message.params?.['name'] === 'broken') return response.writeHead(500).end('boom');
      return json(response, { jsonrpc: '2.0', id: message.id, result: { content: [] } });
    },
  });
  const spine = await startSpine({ toml: toolToml({ name: 'acme', url: server.url }) });
  const { account, key } = await spine.tenant('batcher', '1');
  const headers = {
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${key}`,
    'x-request-id': 'mine',
  };
  const clientInfo = { name: 't', version: '1' };
  const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo };
  const opened = await spine.post('/mcp', { jsonrpc: '2.0', id: 0, method: 'initialize', params }, headers);
  const session = { ...headers, 'mcp-session-id': opened.headers.get('mcp-session-id')! };
  const batch = [
    call(1, 'acme__broken'),
    call(2, 'acme__fine'),
    call(3, 'ask_model', { model: 'no/such', prompt: 'hi' }),
  ];
  const answer = await spine.post('/mcp', batch, session);
  expect(await answer.json()).toMatchObject([
    { id: 1, error: {} },
    { id: 2, result: {} },
    { id: 3, result: {} },
  ]);
  await spine.quiet();
  const lines = spine.logs.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  const calls = lines.filter(({ msg, primitive }) => msg === 'call' && primitive === 'tool');
  const facts = calls.map(({ request_id: id, tool, status }) => [id, tool, status].join(' '));
  expect(new Set(facts)).toEqual(new Set(['mine-0 broken 500', 'mine-1 fine 200']));
  const refusals = await fetch(`${spine.origin}/admin/v1/accounts/${encodeURIComponent(account)}/refusals`, {
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  expect(await refusals.json()).toMatchObject({ data: [{ code: 'invalid_model', request_id: 'mine-2' }] });
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});
