import { expect, test } from 'vitest';
import { META } from '../../../src/mcp/wire/revisions.ts';
import { startBridge } from './bridge.ts';
import { startRawServer } from './raw-legacy-server.ts';

test('a legacy server is discovered by what it says to initialize', async () => {
  const initialized =
    '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true, "n":1.0},"tasks":{"list":{}},"extensions":{"x":{},"io.modelcontextprotocol/tasks":{}}},"serverInfo":{"name":"raw", "version":"1","x":1.0},"instructions":"Be \\u006bind"}';
  const server = await startRawServer(() => '', { initialized });
  const bridge = await startBridge(server.url);
  const { text } = await bridge.post('server/discover', {}, { id: 3 });
  expect(text).toBe(
    `{"jsonrpc":"2.0","id":3,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true, "n":1.0},"extensions":{"x":{}}},` +
      `"instructions":"Be kind","_meta":{"${META.serverInfo}":{"name":"raw", "version":"1","x":1.0}},"resultType":"complete","ttlMs":300000,"cacheScope":"private"}}`,
  );
  expect(bridge.sessions.size).toBe(0);
});
