import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exposedName } from '../../../src/mcp/own/aggregate/names.ts';
import { startRealServers, type RealServers } from './real-servers.ts';

let world: RealServers;
beforeAll(async () => {
  world = await startRealServers();
});
afterAll(async () => world.close());

const INFO = { name: 'test', version: '1' };
const address = (service: string) => new URL(`${world.spine.origin}/mcp${service === '' ? '' : `/${service}`}`);
const requestInit = () => ({ headers: { authorization: `Bearer ${world.spine.key}` } });

/** The two clients as one: what a test does with either. */
const CLIENTS = {
  'SDK v1': async (service: string) => {
    const client = new Client(INFO);
    await client.connect(new StreamableHTTPClientTransport(address(service), { requestInit: requestInit() }));
    return client;
  },
  'SDK v2': async (service: string) => {
    const client = new ModernClient(INFO);
    await client.connect(new ModernTransport(address(service), { requestInit: requestInit() }));
    return client as unknown as Client;
  },
} as const;

const textOf = (result: unknown) =>
  (result as { content: readonly { text?: string }[] }).content.map(({ text }) => text).join('\n');

/** Each session of a server is a process: by day each client uses two of the four ways, in the deep run all. */
const DEEP = process.env['TOLLGATE_DEEP'] === '1';

describe.each(Object.entries(CLIENTS))('%s', (_name, connect) => {
  const [ofOne, ofTwo] = [DEEP || _name === 'SDK v1' ? [_name] : [], DEEP || _name === 'SDK v2' ? [_name] : []];

  test.each(ofTwo)('reads a file through server-filesystem, and pays for it', async () => {
    const client = await connect('real/filesystem');
    const before = (await world.spine.balance()).available;
    const { tools } = await client.listTools();
    const read = tools.find(({ name }) => name === 'read_text_file')!;
    expect(read._meta).toMatchObject({ 'tollgate/price': { per_call: '0.001', currency: 'USDC' } });
    const result = await client.callTool({
      name: 'read_text_file',
      arguments: { path: join(world.directory, 'note.txt') },
    });
    expect(textOf(result)).toContain('a note');
    expect(result._meta).toMatchObject({ 'tollgate/generation': { cost: '0.001' } });
    expect((await world.spine.balance()).available).toBe(before - 1_000n);
    // What is outside of its directory is an error of the tool's, and free.
    const refused = await client.callTool({ name: 'read_text_file', arguments: { path: '/etc/passwd' } });
    expect(refused.isError).toBe(true);
    expect((await world.spine.balance()).available).toBe(before - 1_000n);
    await client.close();
    expect(await world.spine.faults()).toEqual([]);
  });

  test.each(ofOne)('keeps a graph in server-memory', async () => {
    const client = await connect('real/memory');
    await client.callTool({
      name: 'create_entities',
      arguments: { entities: [{ name: `n-${_name}`, entityType: 'note', observations: ['kept'] }] },
    });
    expect(textOf(await client.callTool({ name: 'read_graph', arguments: {} }))).toContain(`n-${_name}`);
    expect(await readFile(join(world.directory, 'memory.json'), 'utf8')).toContain(`n-${_name}`);
    await client.close();
    expect(await world.spine.faults()).toEqual([]);
  });

  test.each(ofOne)('goes through server-everything: tools, prompts, resources, completion, progress', async () => {
    const client = await connect('real/everything');
    expect(client.getServerVersion()?.name).toMatch(/everything/);
    expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hello' } }))).toBe('Echo: hello');
    const { prompts } = await client.listPrompts();
    expect(prompts.length).toBeGreaterThan(0);
    const { resources } = await client.listResources();
    const [first] = resources;
    expect((await client.readResource({ uri: first!.uri })).contents).toHaveLength(1);
    const progress: number[] = [];
    const { tools } = await client.listTools();
    const long = tools.find(({ name }) => /long/i.test(name))!;
    const options = { onprogress: ({ progress: at }: { progress: number }) => void progress.push(at) };
    // The second argument of the one SDK is the third of the other.
    await client.callTool(
      { name: long.name, arguments: { duration: 0.4, steps: 4 } },
      (_name === 'SDK v1' ? undefined : options) as never,
      options,
    );
    expect(progress.length).toBeGreaterThan(1);
    await client.close();
    expect(await world.spine.faults()).toEqual([]);
  });

  test.each(ofTwo)('uses all three through one address', async () => {
    const client = await connect('');
    const before = (await world.spine.balance()).available;
    // A server that is still starting on a busy machine is missing until it has listed its tools.
    await expect
      .poll(async () => (await client.listTools()).tools.map(({ name }) => name))
      .toEqual(
        expect.arrayContaining(['real_everything__echo', 'real_filesystem__read_text_file', 'real_memory__read_graph']),
      );
    expect(textOf(await client.callTool({ name: 'real_everything__echo', arguments: { message: 'all' } }))).toBe(
      'Echo: all',
    );
    const path = join(world.directory, 'note.txt');
    expect(textOf(await client.callTool({ name: 'real_filesystem__read_text_file', arguments: { path } }))).toContain(
      'a note',
    );
    await client.callTool({ name: 'real_memory__read_graph', arguments: {} });
    expect((await world.spine.balance()).available).toBe(before - 3_000n);
    await client.close();
    expect(await world.spine.faults()).toEqual([]);
  });
});

test('at one address, tools that a server has only for clients that it can ask are there, and ask', async () => {
  const client = new Client(INFO, { capabilities: { sampling: {}, elicitation: {}, roots: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    model: 'm',
    role: 'assistant',
    content: { type: 'text', text: 'as you like' },
  }));
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [] }));
  await client.connect(new StreamableHTTPClientTransport(address(''), { requestInit: requestInit() }));
  const { tools } = await client.listTools();
  const name = exposedName('real_everything', 'trigger-sampling-request');
  expect(tools.map((tool) => tool.name)).toContain(name);
  const before = (await world.spine.balance()).available;
  expect(textOf(await client.callTool({ name, arguments: { prompt: 'say', maxTokens: 5 } }))).toContain('as you like');
  expect((await world.spine.balance()).available).toBe(before - 1_000n);
  await client.close();
  // A client that cannot be asked is refused by the server, free.
  const other = new Client(INFO);
  await other.connect(new StreamableHTTPClientTransport(address(''), { requestInit: requestInit() }));
  expect(await other.callTool({ name, arguments: { prompt: 'say' } })).toMatchObject({ isError: true });
  expect((await world.spine.balance()).available).toBe(before - 1_000n);
  await other.close();
  expect(await world.spine.faults()).toEqual([]);
});
