import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';

test('a tool of a modern server that acts at once and answers late is paid, though its client with a session cancelled', async () => {
  const acted = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const server = await startRawMcp(async ({ left }) => {
    acted.resolve();
    await Promise.race([answer.promise, new Promise((resolve) => left.addEventListener('abort', resolve))]);
    return '{"resultType":"complete","content":[]}';
  });
  const spine = await startSpine({ toml: toolToml({ name: 'acts', url: server.url }) });
  const before = (await spine.balance()).available;
  const client = new Client({ name: 'test', version: '1' });
  const headers = { authorization: `Bearer ${spine.key}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${spine.origin}/mcp/acts`), { requestInit: { headers } }),
  );
  void client.callTool({ name: 'any', arguments: {} }).catch(() => {});
  await acted.promise;
  // Its ids begin with 0, which is that of `initialize`. Taken by the gateway when this resolves.
  await client.notification({ method: 'notifications/cancelled', params: { requestId: 1, reason: 'enough' } });
  answer.resolve();
  await spine.quiet();
  expect((await spine.balance()).available).toBe(before - 1_000n);
  expect(await spine.faults()).toEqual([]);
  await client.close();
  await spine.stop();
  await server.close();
});
