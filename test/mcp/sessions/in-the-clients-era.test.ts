import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, test } from 'vitest';
import { findFreePort } from '../../support/free-port.ts';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { toolBlock } from '../conformance/tool-block.ts';
import { messagesOf, open, post, startWorld } from './session-world.ts';

// A server that speaks both eras is met by each client in its own, so that nothing is translated. A session stays
// in the era that it was opened in.

const SIMPLE = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'test_simple_text', arguments: {} } };

test('a session has a session, a request that stands alone has none', async () => {
  const fixture = await startMcpFixture({ eras: 'both' });
  const spine = await startSpine({ toml: UNHURRIED + toolBlock('both', fixture.url) });
  const url = new URL(`${spine.origin}/mcp/both`);
  const requestInit = { headers: { authorization: `Bearer ${spine.key}` } };
  const session = new Client({ name: 'test', version: '1' });
  await session.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  const alone = new ModernClient({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  await alone.connect(new ModernTransport(url, { requestInit }));
  const call = { name: 'test_simple_text', arguments: {} };
  const version = async (ask: Promise<unknown>) => {
    expect(await ask).toMatchObject({ content: [{ type: 'text' }] });
    return [fixture.headers.at(-1)!.get('mcp-protocol-version'), fixture.headers.at(-1)!.has('mcp-session-id')];
  };
  expect(fixture.sessions).toBe(1);
  expect(await version(session.callTool(call))).toEqual(['2025-11-25', true]);
  expect(await version(alone.callTool(call))).toEqual(['2026-07-28', false]);
  expect(await version(session.callTool(call))).toEqual(['2025-11-25', true]);
  await Promise.all([session.close(), alone.close()]);
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await fixture.close();
});

test('a session that was opened through the bridge stays there when its server learns of sessions', async () => {
  const port = await findFreePort();
  const modern = await startMcpFixture({ eras: 'modern', port });
  const world = await startWorld({ url: modern.url });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  await modern.close();
  const both = await startMcpFixture({ eras: 'both', port });
  // Another gateway asks the server anew.
  const other = await world.gateway();
  expect(await messagesOf(await post(other.url, 'alice', id, SIMPLE))).toMatchObject([
    { id: 7, result: { content: [{ type: 'text' }] } },
  ]);
  expect(both.sessions).toBe(0);
  expect(await world.faults()).toEqual([]);
  await gateway.stop();
  await other.stop();
  await both.close();
});
