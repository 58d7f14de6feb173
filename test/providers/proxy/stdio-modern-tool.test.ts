import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterEach, describe, expect, it } from 'vitest';
import { COMPILED_ONCE } from '../../support/compiled-once.ts';
import { serveTunnel } from '../../support/tunnel-http.ts';
import { BOTH, callOf, INITIALIZE, jsonOf, readEvents, stdioTool, textOf, type EventReader } from './stdio-tool.ts';

const tool = stdioTool();
const SCRIPT = fileURLToPath(new URL('../../support/modern-stdio-server.ts', import.meta.url));
const start = (...args: string[]) =>
  tool.start([], {}, { args: [COMPILED_ONCE, SCRIPT, `journal=${join(tool.dir, 'journal')}`, ...args] });
const pids = () => tool.journalled().filter((line) => line.startsWith('pid '));

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const modern = { accept: BOTH, 'mcp-protocol-version': '2026-07-28' };
const ask = (method: string, params: object = {}, id: string | number = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { ...params, _meta: META },
});
const call = (name: string, id: string | number = 1, meta: object = {}) => callOf(name, {}, id, { ...META, ...meta });
const listen = (id: string) =>
  readEvents(tool.open(ask('subscriptions/listen', { notifications: { toolsListChanged: true } }, id), modern));
const said = async (reader: EventReader) => JSON.parse(await reader.next()) as object;
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

describe('a command of the revision without sessions', () => {
  it('is one process for all, and needs no session', async () => {
    await start();
    expect(await tool.running.logged('tool is running')).toMatchObject({
      server: 'modern',
      version: '2',
      protocol: ['2026-07-28'],
    });
    const discovered = await tool.post(ask('server/discover'), modern);
    expect(jsonOf(discovered)).toMatchObject({ id: 1, result: { supportedVersions: ['2026-07-28'] } });
    expect(discovered.headers).not.toHaveProperty('mcp-session-id');
    const replies = await Promise.all([1, 1, 'x'].map((id) => tool.post(call('count', id), modern)));
    expect(replies.map((reply) => jsonOf(reply).id)).toEqual([1, 1, 'x']);
    expect(new Set(replies.map(textOf))).toEqual(new Set([1, 2, 3]));
    expect(pids()).toHaveLength(1);
  });

  it('is asked with the statuses of HTTP', async () => {
    await start('legacy=reject');
    const none = await tool.post(ask('no/such/method'), modern);
    expect([none.status, jsonOf(none).error.code]).toEqual([404, -32601]);
    const other = { ...META, 'io.modelcontextprotocol/protocolVersion': '2099-01-01' };
    const later = await tool.post({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: other } }, modern);
    expect([later.status, jsonOf(later)]).toMatchObject([
      400,
      { error: { code: -32022, data: { supported: ['2026-07-28'], requested: '2099-01-01' } } },
    ]);
  });

  it('gets nothing that would make it speak the older revisions to everybody', async () => {
    await start();
    const bare = await tool.post({ jsonrpc: '2.0', id: 'b', method: 'tools/list' });
    expect([bare.status, jsonOf(bare)]).toMatchObject([
      400,
      { id: 'b', error: { code: -32022, data: { supported: ['2026-07-28'] } } },
    ]);
    expect((await tool.post({ jsonrpc: '2.0', method: 'notifications/own/kind' })).status).toBe(202);
    const held = tool.open(ask('server/discover'), modern);
    held.close(8);
    expect(textOf(await tool.post(call('count'), modern))).toBe(1);
    expect(tool.got('own/kind')).toEqual([]);
  });

  it('streams progress under the token of the one who asked', async () => {
    await start();
    const readers = [1, 2].map((id) => readEvents(tool.open(call('progress', id, { progressToken: 'mine' }), modern)));
    for (const [index, reader] of readers.entries()) {
      for (const progress of [1, 2])
        expect(await said(reader)).toMatchObject({ params: { progressToken: 'mine', progress } });
      expect(await said(reader)).toMatchObject({ id: index + 1, result: { resultType: 'complete' } });
    }
  });

  it('hears of a client that closes its stream', async () => {
    await start();
    const held = tool.open(call('hold'), modern);
    await expect.poll(() => tool.journalled(), { interval: 10, timeout: 60_000 }).toContain('held');
    held.close(8);
    await expect.poll(() => tool.journalled(), { interval: 10, timeout: 60_000 }).toContain('aborted');
    expect(tool.got('notifications/cancelled')).toMatchObject([{ params: { requestId: 2, _meta: META } }]);
  });

  it('tells changes to each client that listens, under its own id, until it closes its stream', async () => {
    await start();
    const [first, second] = [listen('listen:0'), listen('listen:0')];
    for (const reader of [first, second])
      expect(await said(reader)).toMatchObject({
        method: 'notifications/subscriptions/acknowledged',
        params: { _meta: { [SUBSCRIPTION]: 'listen:0' } },
      });
    await tool.post(call('add'), modern);
    for (const reader of [first, second])
      expect(await said(reader)).toMatchObject({
        method: 'notifications/tools/list_changed',
        params: { _meta: { [SUBSCRIPTION]: 'listen:0' } },
      });
    expect((await tool.post(ask('subscriptions/listen'), { accept: 'application/json' })).status).toBe(406);
  });

  it('says to those who listen that the provider stops', async () => {
    await start();
    const reader = listen('listen:0');
    await said(reader);
    expect(await tool.running.proxy.close()).toBe(0);
    expect(await said(reader)).toEqual({
      jsonrpc: '2.0',
      id: 'listen:0',
      result: { resultType: 'complete', _meta: { [SUBSCRIPTION]: 'listen:0' } },
    });
    expect(await reader.over).toBe('complete');
  });

  it('may not ask a client for directories, which are those of its own machine', async () => {
    await start();
    const capabilities = { 'io.modelcontextprotocol/clientCapabilities': { roots: {}, sampling: {} } };
    const reply = await tool.post(call('roots', 1, capabilities), modern);
    expect([reply.status, jsonOf(reply).error.code]).toEqual([400, -32021]);
  });

  it('gives clients of the older revisions a session, where it speaks those as well', async () => {
    await start();
    const [first, second] = [await tool.session(), await tool.session()];
    const count = async (session: Readonly<Record<string, string>>) =>
      textOf(await tool.post(callOf('count'), session));
    expect([await count(first), await count(first), await count(second)]).toEqual([1, 2, 1]);
    expect(textOf(await tool.post(call('count'), modern))).toBe(1);
    expect(pids()).toHaveLength(3);
  });

  it('refuses them where it does not, and starts no process more than once to find out', async () => {
    await start('legacy=reject');
    for (const id of [1, 2, 3]) {
      const reply = await tool.post({ ...INITIALIZE, id }, { accept: BOTH });
      expect([reply.status, jsonOf(reply)]).toMatchObject([400, { id, error: { code: -32022 } }]);
      expect(reply.headers).not.toHaveProperty('mcp-session-id');
    }
    expect(pids()).toHaveLength(2);
  });
});

describe('clients of the SDK', () => {
  let stop = () => {};
  afterEach(() => stop());
  const serve = async () => {
    const served = await serveTunnel(tool.end, '/tool/t');
    ({ stop } = served);
    return served.url;
  };

  it('reach it in the new revision', async () => {
    await start();
    const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await client.connect(new StreamableHTTPClientTransport(await serve()));
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('count');
    expect(await client.callTool({ name: 'count', arguments: {} })).toMatchObject({ content: [{ text: '1' }] });
    const changed = Promise.withResolvers<void>();
    client.setNotificationHandler('notifications/tools/list_changed', () => changed.resolve());
    const subscription = await client.listen({ toolsListChanged: true });
    await client.callTool({ name: 'add', arguments: {} });
    await changed.promise;
    await subscription.close();
    await client.close();
  });

  it('and in the older ones', async () => {
    await start();
    const client = new ClientV1({ name: 'c', version: '1' });
    const transport = new TransportV1(await serve());
    await client.connect(transport);
    expect(await client.callTool({ name: 'count' })).toMatchObject({ content: [{ text: '1' }] });
    await transport.terminateSession();
    await client.close();
  });
});
