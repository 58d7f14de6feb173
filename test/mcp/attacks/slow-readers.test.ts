import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { callTool, toolToml } from '../calls/modern-post.ts';

test('a client that does not read until the clock ends its call is no failure, of the provider or of the gateway', async () => {
  const note = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${'a'.repeat(60_000)}"}}\n\n`;
  const server = await startRawMcp(({ params }) =>
    params['name'] === 'chatty'
      ? async (response, { left }) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          while (!left.aborted && !response.destroyed)
            if (!response.write(note)) await new Promise((resolve) => setTimeout(resolve, 5));
        }
      : '{"content":[],"resultType":"complete"}',
  );
  const spine = await startSpine({
    toml: `${toolToml({ name: 'acme', url: server.url })}\n[upstream]\ncall_timeout_ms = 3000\n`,
  });
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'chatty', _meta: meta } });
  const { port } = new URL(spine.origin);
  const clients = Array.from({ length: 4 }, () => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    socket.pause();
    socket.write(
      `POST /mcp/acme HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: chatty\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    return socket;
  });
  while ((await spine.locks()).length < clients.length) await new Promise((resolve) => setTimeout(resolve, 10));
  // They never read; what ends them is the clock of the call, then that they go.
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  for (const socket of clients) socket.destroy();
  expect(await spine.faults()).toEqual([]);
  expect((await spine.balance()).available).toBe(100_000_000n);
  expect(spine.logs.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  expect((await callTool(spine, 'acme', 'quick')).status).toBe(200);
  await spine.stop();
  await server.close();
});
