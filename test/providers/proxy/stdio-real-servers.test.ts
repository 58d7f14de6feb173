import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  type ClientCapabilities,
} from '@modelcontextprotocol/sdk/types.js';
import { afterEach, describe, expect, it } from 'vitest';
import type { CommandTarget } from '../../../src/server/config/service.ts';
import { serveTunnel } from '../../support/tunnel-http.ts';
import { stdioTool } from './stdio-tool.ts';

const tool = stdioTool();
const program = (name: string) =>
  join(
    dirname(createRequire(import.meta.url).resolve(`@modelcontextprotocol/server-${name}/package.json`)),
    'dist/index.js',
  );
let url: URL;
let stops: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

async function start(name: string, args: readonly string[] = [], changes: Partial<CommandTarget> = {}): Promise<void> {
  await tool.start([], {}, { args: [program(name), ...args], ...changes });
  const served = await serveTunnel(tool.end, '/tool/t');
  ({ url } = served);
  stops = [served.stop];
}

/** A client with a session of its own. */
async function connect(
  capabilities: ClientCapabilities = {},
  prepare: (client: Client) => void = () => {},
): Promise<Client> {
  const client = new Client({ name: 'c', version: '1' }, { capabilities });
  prepare(client);
  const transport = new StreamableHTTPClientTransport(url);
  await client.connect(transport);
  stops.push(async () => {
    await transport.terminateSession();
    await client.close();
  });
  return client;
}

async function call(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { content } = await client.callTool({ name, arguments: args });
  return (content as { text?: string }[]).map(({ text }) => text).join('\n');
}

describe('server-everything', () => {
  it('lists, echoes, reads and completes for the clients of both SDKs', async () => {
    await start('everything');
    const client = await connect();
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo');
    expect(await call(client, 'echo', { message: 'hé' })).toBe('Echo: hé');
    expect((await client.listResources()).resources.length).toBeGreaterThan(0);
    expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0);
    const second = new ClientV2({ name: 'c', version: '2' }, { versionNegotiation: { mode: 'auto' } });
    await second.connect(new TransportV2(url));
    expect(await second.callTool({ name: 'get-sum', arguments: { a: 2, b: 3 } })).toMatchObject({
      content: [{ text: 'The sum of 2 and 3 is 5.' }],
    });
    await second.close();
  });

  it('asks the client for a model, for a form, and for roots where they are allowed', async () => {
    await start('everything', [], { roots: true });
    const client = await connect({ sampling: {}, elicitation: {}, roots: {} }, (each) => {
      each.setRequestHandler(CreateMessageRequestSchema, () => ({
        role: 'assistant',
        model: 'm',
        content: { type: 'text', text: 'sampled-here' },
      }));
      each.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
      each.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///srv/mine', name: 'mine' }] }));
    });
    expect(await call(client, 'trigger-sampling-request', { prompt: 'p' })).toContain('sampled-here');
    expect(await call(client, 'trigger-elicitation-request')).toContain('Ada');
    expect(await call(client, 'get-roots-list')).toContain('file:///srv/mine');
  });

  it('tells its progress, and stops when the client does not want to wait', async () => {
    await start('everything');
    const client = await connect();
    const progress: number[] = [];
    const params = { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 4 } };
    await client.callTool(params, undefined, { onprogress: ({ progress: each }) => progress.push(each) });
    expect(progress).toEqual([1, 2, 3, 4]);
    const cancel = new AbortController();
    const long = client.callTool({ ...params, arguments: { duration: 60, steps: 1_000 } }, undefined, {
      signal: cancel.signal,
      onprogress: () => cancel.abort(),
    });
    await expect(long).rejects.toThrow();
    expect(await call(client, 'echo', { message: 'still here' })).toContain('still here');
  });

  it('logs to one session and not to the other', async () => {
    await start('everything');
    const heard = new Map<string, unknown[]>([
      ['a', []],
      ['b', []],
    ]);
    const logged = Promise.withResolvers<void>();
    const listener = (name: string) => (client: Client) =>
      client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
        heard.get(name)!.push(params);
        logged.resolve();
      });
    const [a, b] = [await connect({}, listener('a')), await connect({}, listener('b'))];
    await a.setLoggingLevel('debug');
    await call(a, 'toggle-simulated-logging');
    await logged.promise;
    await call(b, 'echo', { message: 'x' });
    expect(heard.get('b')).toEqual([]);
  });
});

describe('server-filesystem', () => {
  it('keeps to the directories of the provider, whatever a client says', async () => {
    const open = join(realpathSync(tool.dir), 'open');
    mkdirSync(open);
    writeFileSync(join(open, 'a.txt'), 'for all');
    writeFileSync(join(open, '../secret.txt'), 'not for all');
    await start('filesystem', [open]);
    const client = await connect({ roots: { listChanged: true } }, (each) =>
      each.setRequestHandler(ListRootsRequestSchema, () => ({
        roots: [{ uri: pathToFileURL(dirname(open)).href, name: 'more' }],
      })),
    );
    await client.sendRootsListChanged();
    expect(await call(client, 'read_text_file', { path: join(open, 'a.txt') })).toContain('for all');
    expect(await call(client, 'read_text_file', { path: join(open, '../secret.txt') })).toContain('Access denied');
    expect(await call(client, 'list_allowed_directories')).toBe(`Allowed directories:\n${open}`);
  });
});

describe('server-memory', () => {
  it('remembers in the file of the provider, for all sessions', async () => {
    const file = join(tool.dir, 'memory.jsonl');
    await start('memory', [], { env: { MEMORY_FILE_PATH: file } });
    const [a, b] = [await connect(), await connect()];
    await call(a, 'create_entities', {
      entities: [{ name: 'Ada', entityType: 'person', observations: ['wrote the first program'] }],
    });
    expect(await call(b, 'read_graph')).toContain('wrote the first program');
  });
});
