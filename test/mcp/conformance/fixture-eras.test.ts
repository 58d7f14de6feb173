import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, onTestFinished, test } from 'vitest';
import { startMcpFixture, type McpFixtureOptions } from '../../support/mcp-fixture.ts';

const who = { name: 'test', version: '1' };

async function fixtureOf(eras: McpFixtureOptions['eras'] & string) {
  const fixture = await startMcpFixture({ eras });
  onTestFinished(() => fixture.close());
  return fixture;
}

/** The revision that a client of the second SDK agrees on when it looks what there is. */
async function negotiated(url: string) {
  const client = new ClientV2(who, { versionNegotiation: { mode: 'auto' } });
  onTestFinished(() => client.close());
  await client.connect(new TransportV2(new URL(url)));
  expect((await client.callTool({ name: 'test_simple_text', arguments: {} })).content).toHaveLength(1);
  return client.getNegotiatedProtocolVersion();
}

async function connectV1(url: string) {
  const client = new ClientV1(who);
  onTestFinished(() => client.close());
  const transport = new TransportV1(new URL(url));
  await client.connect(transport);
  return { client, transport };
}

test('a fixture of both eras serves each client in its own', async () => {
  const fixture = await fixtureOf('both');
  expect(await negotiated(fixture.url)).toBe('2026-07-28');
  expect(fixture.sessions).toBe(0);
  const { client, transport } = await connectV1(fixture.url);
  expect((await client.listTools()).tools[0]?.name).toBe('test_simple_text');
  expect(fixture.sessions).toBe(1);
  await transport.terminateSession();
  expect(fixture.sessions).toBe(0);
});

test('a legacy fixture makes a modern client fall back', async () => {
  const fixture = await fixtureOf('legacy');
  expect(await negotiated(fixture.url)).toBe('2025-11-25');
  expect(fixture.sessions).toBe(1);
});

test('a modern fixture has no sessions for legacy clients', async () => {
  const fixture = await fixtureOf('modern');
  expect(await negotiated(fixture.url)).toBe('2026-07-28');
  await expect(connectV1(fixture.url)).rejects.toThrow('Unsupported protocol version');
  expect(fixture.sessions).toBe(0);
});

test('a subscriber hears of its resource, in either era', async () => {
  const fixture = await fixtureOf('both');
  const heard: string[] = [];
  const both = Promise.withResolvers<void>();
  const hear = (era: string) => (notification: { readonly params: { readonly uri: string } }) => {
    heard.push(`${era} ${notification.params.uri}`);
    if (heard.length === 2) both.resolve();
  };
  const modern = new ClientV2(who, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  const legacy = new ClientV2(who);
  for (const [client, era] of [
    [modern, 'modern'],
    [legacy, 'legacy'],
  ] as const) {
    client.setNotificationHandler('notifications/resources/updated', hear(era));
    await client.connect(new TransportV2(new URL(fixture.url)));
    onTestFinished(() => client.close());
  }
  const subscription = await modern.listen({ resourceSubscriptions: ['test://watched-resource'] });
  await legacy.subscribeResource({ uri: 'test://watched-resource' });
  await legacy.callTool({ name: 'test_trigger_resource_update', arguments: {} });
  await both.promise;
  expect(heard.toSorted()).toEqual(['legacy test://watched-resource', 'modern test://watched-resource']);
  await subscription.close();
});
