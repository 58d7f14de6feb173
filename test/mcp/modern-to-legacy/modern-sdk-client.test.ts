import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect, onTestFinished, test } from 'vitest';
import { startBridge } from './bridge.ts';
import { startLegacyServer, textOf } from './legacy-server.ts';

test('a client of the second SDK, pinned to the modern revision, uses a server of the first', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const client = new Client(
    { name: 'modern', version: '1' },
    {
      capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
      versionNegotiation: { mode: { pin: '2026-07-28' } },
    },
  );
  onTestFinished(() => client.close());
  const names = ['Ann', 'blue'];
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const [field] = Object.keys((params as { requestedSchema: { properties: object } }).requestedSchema.properties);
    return { action: 'accept', content: { [field!]: names.shift()! } };
  });
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    content: { type: 'text', text: 'Hello' },
    model: 'm',
  }));
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///a' }] }));
  await client.connect(new StreamableHTTPClientTransport(new URL(bridge.url)));

  expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
  expect(client.getServerVersion()?.name).toBe('legacy');
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('interview');
  expect((await client.readResource({ uri: 'test://any/1' })).contents).toEqual([{ uri: 'test://any/1', text: 'any' }]);
  expect((await client.getPrompt({ name: 'greet' })).messages).toHaveLength(1);
  expect(textOf(await client.callTool({ name: 'interview', arguments: {} }))).toBe('Ann likes blue');
  expect(textOf(await client.callTool({ name: 'sample', arguments: {} }))).toContain('Hello');
  expect(textOf(await client.callTool({ name: 'roots', arguments: {} }))).toContain('file:///a');
  const progress: number[] = [];
  await client.callTool(
    { name: 'progress', arguments: {} },
    { onprogress: (report) => void progress.push(report.progress) },
  );
  expect(progress).toEqual([1, 2]);

  expect(bridge.held.size).toBe(0);
  expect(await bridge.heldLocks()).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});
