import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { openRawServer } from '../modern-to-legacy/raw-legacy-server.ts';
import { toolToml } from '../calls/modern-post.ts';

// A server may agree to any revision. Its client must not be told one that the gateway refuses in the next request.

let server: Awaited<ReturnType<typeof openRawServer>>;
let spine: Spine;
beforeAll(async () => {
  server = await openRawServer(
    ({ message: { id } }) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":[]}}`,
  );
  spine = await startSpine({ toml: toolToml({ name: 'one', url: server.url }) });
});
afterAll(async () => {
  await spine.stop();
  await server.close();
});

test.each([
  ['2099-01-01', '2025-11-25'],
  ['1.0', '2025-11-25'],
  ['', '2025-11-25'],
  [undefined, '2025-11-25'],
  [null, '2025-11-25'],
  [7, '2025-11-25'],
  ['2024-11-05', '2024-11-05'],
])('a client that asks for %j asks its server for %j', async (protocolVersion, asked) => {
  const reply = await fetch(`${spine.origin}/mcp/one`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion, capabilities: {}, clientInfo: { name: 'c', version: '1' } },
    }),
  });
  expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining('"protocolVersion"')]);
  const sent = server.seen.filter(({ message }) => message.method === 'initialize');
  expect(sent.at(-1)!.message.params).toEqual({
    protocolVersion: asked,
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  });
});
