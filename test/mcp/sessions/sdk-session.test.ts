import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import { connect, textOf } from './sdk-client.ts';
import { startSdkServer, type SdkServer } from './sdk-server.ts';
import { PRICE, startWorld, type TestGateway } from './session-world.ts';

describe.each([
  ['with events', {}],
  ['with events that can be resumed', { resumable: true }],
  ['with JSON', { json: true }],
])('a client of the SDK in front of a server that answers %s', (_name, options) => {
  async function world() {
    const server = await startSdkServer(options);
    const world = await startWorld({ url: server.url });
    return { server, world, gateway: await world.gateway() };
  }

  test('lists and calls tools, and pays for calls that did something', async () => {
    const { world: money, gateway } = await world();
    const { client } = await connect(gateway.url, 'alice');
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo');
    expect(await textOf(client.callTool({ name: 'echo', arguments: { text: 'hello' } }))).toBe('hello');
    expect(await money.charged('alice')).toBe(PRICE);
    expect((await client.callTool({ name: 'fails', arguments: {} })).isError).toBe(true);
    expect(await money.charged('alice')).toBe(PRICE);
    expect(gateway.endings).toEqual(['echo: complete, 1000', 'fails: isError, 0']);
    expect(gateway.errors).toEqual([]);
    expect(await money.faults()).toEqual([]);
  });

  test('has a session at the server of its own, which its DELETE ends', async () => {
    const { server, world: money, gateway } = await world();
    const alice = await connect(gateway.url, 'alice');
    const bob = await connect(gateway.url, 'bob');
    expect(server.sessions()).toHaveLength(2);
    expect(server.sessions()).not.toContain(alice.transport.sessionId);
    await alice.transport.terminateSession();
    expect(server.sessions()).toHaveLength(1);
    await expect(alice.client.listTools()).rejects.toThrow();
    expect(await bob.client.listTools()).toBeDefined();
    expect(await money.rows()).toBe(1);
    expect(await money.faults()).toEqual([]);
  });
});

/** The client of the SDK listens once it is connected. What a server asks or tells before is lost. */
async function listens(gateway: TestGateway, server: SdkServer): Promise<void> {
  const [id] = server.sessions();
  while (gateway.listens.count === 0) await new Promise((resolve) => setImmediate(resolve));
  while (!server.requests.includes(`GET ${id} `)) await new Promise((resolve) => setImmediate(resolve));
}

describe.each([
  ['events', {}],
  ['events that can be resumed', { resumable: true }],
])('a server that answers with %s', (_name, options) => {
  test('asks its client to sample, to elicit and for its roots, in the middle of a call', async () => {
    const server = await startSdkServer(options);
    const world = await startWorld({ url: server.url });
    const gateway = await world.gateway();
    const { client } = await connect(gateway.url, 'alice', (own) => {
      own.setRequestHandler(CreateMessageRequestSchema, () => ({
        model: 'm',
        role: 'assistant',
        content: { type: 'text', text: 'sampled' },
      }));
      own.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
      own.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///home', name: 'home' }] }));
    });
    await listens(gateway, server);
    expect(await textOf(client.callTool({ name: 'sample', arguments: {} }))).toContain('sampled');
    expect(await textOf(client.callTool({ name: 'elicit', arguments: {} }))).toContain('Ada');
    expect(await textOf(client.callTool({ name: 'roots', arguments: {} }))).toContain('file:///home');
    expect(await world.charged('alice')).toBe(3n * PRICE);
    expect(await world.faults()).toEqual([]);
  });

  test('reports progress to the call that asked for it', async () => {
    const server = await startSdkServer(options);
    const world = await startWorld({ url: server.url });
    const gateway = await world.gateway();
    const { client } = await connect(gateway.url, 'alice');
    const seen: number[] = [];
    const result = client.callTool({ name: 'progress', arguments: {} }, undefined, {
      onprogress: ({ progress }) => void seen.push(progress),
    });
    expect(await textOf(result)).toBe('done');
    expect(seen).toEqual([1, 2, 3]);
    expect(await world.faults()).toEqual([]);
  });

  test('announces changes on the stream that its client listens on', async () => {
    const server = await startSdkServer(options);
    const world = await startWorld({ url: server.url });
    const gateway = await world.gateway();
    const changed = Promise.withResolvers<void>();
    const { client } = await connect(gateway.url, 'alice', (own) => {
      own.fallbackNotificationHandler = ({ method }) => {
        if (method === 'notifications/tools/list_changed') changed.resolve();
        return Promise.resolve();
      };
    });
    await client.ping();
    const [id] = server.sessions();
    await listens(gateway, server);
    server.session(id!).server.sendToolListChanged();
    await changed.promise;
    await client.close();
    while (gateway.listens.count > 0 || gateway.inFlight() > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(gateway.errors).toEqual([]);
  });
});
