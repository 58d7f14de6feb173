import { expect, test } from 'vitest';
import { startBridgeWorld } from './bridge-world.ts';
import { startTools, text } from './raw-tools.ts';

test('the longest service that there is has the name, the rest is its tool', async () => {
  const short = await startTools({ 'b/read': {}, read: {} }, ({ params }) => text(`short ${String(params['name'])}`));
  const long = await startTools({ read: {} }, ({ params }) => text(`long ${String(params['name'])}`));
  const { say, mcp } = await startBridgeWorld({
    tools: { a: { url: short.url }, 'a/b': { url: long.url }, slow: { url: short.url } },
  });
  await Promise.all(['a', 'a/b', 'slow'].map((service) => mcp.toolsOf(service)));
  const said = async (name: string) => (await say(name, '{}')).parts;
  expect(await said('a/read')).toEqual([{ kind: 'text', text: 'short read' }]);
  expect(await said('a/b/read')).toEqual([{ kind: 'text', text: 'long read' }]);
  expect(await said('slow/b/read')).toEqual([{ kind: 'text', text: 'short b/read' }]);
  // Of one provider, and with a word on how it is chosen.
  expect(await said('a:floor/read')).toEqual([{ kind: 'text', text: 'short read' }]);

  expect(['a/read', 'a/b/read', 'slow/b/read', 'a:floor/read'].map(mcp.target.has)).toEqual([true, true, true, true]);
  expect(
    ['a', 'a/', '/read', 'a/b/b/read', 'b/read', 'a/write', `a/${'x'.repeat(600)}`].map(mcp.target.has),
  ).not.toContain(true);
});

test('a name that is wrong is answered with those that are nearest', async () => {
  const server = await startTools({ read_file: {}, write_file: {} }, () => text('done'));
  const { say, mcp } = await startBridgeWorld({ tools: { files: { url: server.url } } });
  await mcp.toolsOf('files');
  await expect(say('files/reed_file', '{}')).rejects.toMatchObject({
    code: 'invalid_model',
    message: expect.stringMatching(/^Tool not found: files\/reed_file\. The nearest: files\/read_file/),
  });
});

test('all tools are listed by their names, with the first sentence of their server on each', async () => {
  const server = await startTools(
    { b: { description: 'Reads a file.\nIt takes long.' }, a: { description: 'x'.repeat(900) }, c: {} },
    () => text('done'),
  );
  const { mcp } = await startBridgeWorld({ tools: { files: { url: server.url }, 'acme/more': { url: server.url } } });
  await Promise.all(['files', 'acme/more'].map((service) => mcp.toolsOf(service)));
  const all = mcp.target.list(100);
  expect(all.map(({ name }) => name)).toEqual([
    'acme/more/a',
    'acme/more/b',
    'acme/more/c',
    'files/a',
    'files/b',
    'files/c',
  ]);
  expect(all[1]).toEqual({ name: 'acme/more/b', displayName: 'b', description: 'Reads a file.' });
  expect(all[0]!.description).toHaveLength(200);
  expect(mcp.target.list(2)).toHaveLength(2);
});

test('what a service has is fetched where it is not known yet', async () => {
  const server = await startTools(
    { read: { description: 'Reads.', properties: { path: { type: 'string' } } }, bare: {} },
    () => text('done'),
  );
  const bare = await startTools({}, () => text('done'));
  const { mcp, say } = await startBridgeWorld({
    tools: { files: { url: server.url }, bare: { url: bare.url }, gone: { url: 'http://127.0.0.1:9' } },
  });
  // Nobody has listed anything before: the first text waits for the schema.
  expect((await say('files/read', '/etc/motd')).end.finish).toBe('stop');
  expect(server.asked.at(-1)!.params['arguments']).toEqual({ path: '/etc/motd' });
  const tools = await mcp.toolsOf('files');
  expect(
    tools.map((tool) => ({ name: tool.name, description: tool.description, inputSchema: tool.inputSchema() })),
  ).toEqual([
    {
      name: 'read',
      description: 'Reads.',
      inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: [] },
    },
    { name: 'bare', description: '', inputSchema: { type: 'object', properties: {}, required: [] } },
  ]);
  await expect(mcp.toolsOf('files/read')).rejects.toMatchObject({ code: 'not_found' });
  // One that has no tools is known. One that is not reached is not, and nobody waits for it for ever.
  expect(await mcp.toolsOf('bare')).toEqual([]);
  await expect(mcp.toolsOf('gone')).rejects.toMatchObject({
    code: 'no_provider_healthy',
    message: expect.stringMatching(/^The tools of gone are not known yet, .* Try again in a few seconds/),
    retryAfterS: 10,
  });
  await expect(say('gone/read', 'hello')).rejects.toMatchObject({
    code: 'unprocessable',
    message: expect.stringContaining('not known yet'),
  });
});
