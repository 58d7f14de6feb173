import { expect, test } from 'vitest';
import { startBridgeWorld } from './bridge-world.ts';
import { result, startTools } from './raw-tools.ts';

async function saidFor(content: readonly object[], more: object = {}) {
  const server = await startTools({ say: {} }, () => result(content, more));
  const { say } = await startBridgeWorld({ tools: { files: { url: server.url } } });
  const { parts, end } = await say('files/say', '{}');
  expect(end).toMatchObject({ finish: 'stop', error: null, taskId: null, contextId: null });
  return parts;
}

const file = (of: object) => ({ kind: 'file', mediaType: null, name: null, url: null, bytes: null, ...of });

test('texts, images, sounds, embedded resources and links are parts, in their order', async () => {
  const parts = await saidFor([
    { type: 'text', text: 'one' },
    { type: 'image', data: 'aW1n', mimeType: 'image/png' },
    { type: 'audio', data: 'c25k', mimeType: 'audio/wav' },
    { type: 'resource', resource: { uri: 'file:///notes.md', mimeType: 'text/markdown', text: '# two' } },
    { type: 'resource', resource: { uri: 'file:///a/b.bin?v=1', mimeType: 'application/x-b', blob: 'Yg==' } },
    { type: 'resource_link', uri: 'https://example.com/c', name: 'c', mimeType: 'text/plain' },
  ]);
  expect(parts).toEqual([
    { kind: 'text', text: 'one' },
    file({ mediaType: 'image/png', bytes: 'aW1n' }),
    file({ mediaType: 'audio/wav', bytes: 'c25k' }),
    { kind: 'text', text: '# two' },
    file({ mediaType: 'application/x-b', name: 'b.bin', bytes: 'Yg==' }),
    file({ mediaType: 'text/plain', name: 'c', url: 'https://example.com/c' }),
  ]);
});

test('an empty text is a part too, so that the answer of a tool that says nothing else has one', async () => {
  expect(await saidFor([{ type: 'text', text: '' }])).toEqual([{ kind: 'text', text: '' }]);
});

test('structured content is data, unless a text says the same', async () => {
  const structured = { a: 1, b: [true, null] };
  expect(
    await saidFor([{ type: 'text', text: ' {"b": [true, null], "a": 1.0}' }], { structuredContent: structured }),
  ).toHaveLength(1);
  expect(await saidFor([{ type: 'text', text: 'a is 1' }], { structuredContent: structured })).toEqual([
    { kind: 'text', text: 'a is 1' },
    { kind: 'data', data: structured },
  ]);
  expect(await saidFor([], { structuredContent: structured })).toEqual([{ kind: 'data', data: structured }]);
});

test('structured content keeps its large integers, also beside a text that says the same', async () => {
  const number = '12345678901234567890';
  const said = async (text: string) => {
    const more = `"content":[{"type":"text","text":${JSON.stringify(text)}}],"structuredContent":{"id":${number}}`;
    const server = await startTools({ say: {} }, () => `{"resultType":"complete",${more}}`);
    const { say } = await startBridgeWorld({ tools: { files: { url: server.url } } });
    return (await say('files/say', '{}')).parts;
  };
  expect(JSON.stringify((await said('found')).at(-1))).toBe(`{"kind":"data","data":{"id":${number}}}`);
  expect(await said(`{"id": ${number}}`)).toEqual([{ kind: 'text', text: `{"id": ${number}}` }]);
});

test.each([
  [{ type: 'hologram', x: 1 }, 'content[0].type'],
  [{ type: 'text', text: 7 }, 'content[0].text'],
  [{ type: 'image' }, 'content[0].data'],
  [{ type: 'resource', resource: 3 }, 'content[0].resource'],
])('content that no client can read is a failure of the provider: %j', async (content, where) => {
  const server = await startTools({ say: {} }, () => result([content]));
  const { say } = await startBridgeWorld({ tools: { files: { url: server.url } } });
  const { parts, end } = await say('files/say', '{}');
  expect(parts).toEqual([]);
  expect(end).toMatchObject({
    finish: 'failed',
    errorCode: 'provider_unavailable',
    error: expect.stringContaining(where),
  });
});

test('progress of the tool is told as it comes, to a door that streams', async () => {
  const server = await startTools({ say: {} }, ({ params, idText }) => (response) => {
    const { progressToken } = (params['_meta'] ?? {}) as { progressToken?: string };
    const event = (message: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
    const progress = (more: object) => event({ method: 'notifications/progress', params: { progressToken, ...more } });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (progressToken !== undefined)
      response.write(progress({ progress: 1, message: 'begun' }) + progress({ progress: 2, total: 3 }));
    response.write(
      event({
        method: 'notifications/progress',
        params: { progressToken: 'of another', progress: 3, message: 'not ours' },
      }),
    );
    response.end(`data: {"jsonrpc":"2.0","id":${idText},"result":${result([{ type: 'text', text: 'done' }])}}\n\n`);
  });
  const { say } = await startBridgeWorld({ tools: { files: { url: server.url } } });
  expect(await say('files/say', { arguments: {}, stream: true })).toMatchObject({
    progress: ['begun', '2/3'],
    parts: [{ text: 'done' }],
  });
  expect(await say('files/say', { arguments: {} })).toMatchObject({ progress: [], parts: [{ text: 'done' }] });
});
