import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, onTestFinished, test } from 'vitest';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { startBridge } from './bridge-world.ts';
import { startLegacyServer } from './legacy-server.ts';

const INFO = { name: 'client', version: '1' };
const CAPABILITIES = { capabilities: { elicitation: {} } };
const ANSWER = { action: 'accept' as const, content: { name: 'Ada', color: 'blue' } };

async function start() {
  const fixture = await startMcpFixture({ eras: 'modern' });
  onTestFinished(() => fixture.close());
  const world = await startBridge(fixture.url);
  return { fixture, world, url: new URL((await startLegacyServer(world)).url) };
}

test('the older library: questions, progress, subscriptions, and a session that is closed', async () => {
  const { fixture, world, url } = await start();
  const client = new ClientV1(INFO, CAPABILITIES);
  client.setRequestHandler(ElicitRequestSchema, () => ANSWER);
  const updated = Promise.withResolvers<string>();
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updated.resolve(params.uri));
  await client.connect(new TransportV1(url));
  expect(client.getServerVersion()?.name).toBe('tollgate-mcp-fixture');
  expect(await client.callTool({ name: 'test_input_required_result_multi_round' })).toMatchObject({
    content: [{ text: 'Ada likes blue' }],
  });
  const progress: number[] = [];
  await client.callTool({ name: 'test_tool_with_progress' }, undefined, {
    onprogress: (each) => progress.push(each.progress),
  });
  expect(progress).toEqual([0, 50, 100]);
  // The library opens its stream behind the scenes.
  await expect
    .poll(() => fixture.headers.some((headers) => headers.get('mcp-method') === 'subscriptions/listen'))
    .toBe(true);
  await client.subscribeResource({ uri: 'test://watched-resource' });
  await client.callTool({ name: 'test_trigger_resource_update' });
  expect(await updated.promise).toBe('test://watched-resource');
  await client.close();
  expect(world.clientRequests.count).toBe(0);
  expect(await world.faults()).toEqual([]);
});

test('the newer library in its older mode: questions, and a call that its user stops', async () => {
  const { world, url } = await start();
  const client = new ClientV2(INFO, CAPABILITIES);
  const asked = Promise.withResolvers<void>();
  let answers = true;
  client.setRequestHandler('elicitation/create', () => {
    if (answers) return ANSWER;
    asked.resolve();
    return new Promise<never>(() => {});
  });
  await client.connect(new TransportV2(url));
  expect(await client.callTool({ name: 'test_input_required_result_elicitation' })).toMatchObject({
    content: [{ text: 'Hello, Ada!' }],
  });
  answers = false;
  const stop = new AbortController();
  const call = client.callTool({ name: 'test_streaming_elicitation' }, { signal: stop.signal });
  call.catch(() => {});
  await asked.promise;
  expect(world.clientRequests.count).toBe(1);
  stop.abort();
  await expect(call).rejects.toThrow();
  await expect.poll(() => world.endings.at(-1)).toBe('test_streaming_elicitation: cancelled, 0');
  expect([world.clientRequests.count, world.bridge.running]).toEqual([0, 0]);
  await client.close();
  expect(await world.faults()).toEqual([]);
});
