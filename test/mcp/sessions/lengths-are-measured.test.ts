import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';

test('a session that ends is in the figures with its revision', async () => {
  const server = await startRawMcp(() => '{"resultType":"complete","content":[]}');
  const spine = await startSpine({ toml: toolToml({ name: 'any', url: server.url }) });
  const transport = new StreamableHTTPClientTransport(new URL(`${spine.origin}/mcp/any`), {
    requestInit: { headers: { authorization: `Bearer ${spine.key}` } },
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  const figures = async () =>
    (await fetch(`${spine.origin}/metrics`, { headers: { authorization: `Bearer ${spine.adminKey}` } })).text();
  expect(await figures()).toContain('tollgate_mcp_sessions 1');
  await transport.terminateSession();
  // They are made once a second.
  await expect.poll(figures, { timeout: 60_000 }).toContain('tollgate_mcp_sessions 0');
  const after = await figures();
  expect(after).toContain('tollgate_mcp_sessions 0');
  expect(after).toMatch(/mcp_server_session_duration_seconds_count\{[^}]*2025-11-25[^}]*\} 1/);
  await client.close();
  await spine.stop();
  await server.close();
});
