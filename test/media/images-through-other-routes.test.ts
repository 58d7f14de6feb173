import { afterEach, beforeEach, expect, test } from 'vitest';
import { events, UNHURRIED } from '../support/spine.ts';
import { imageBlock, paintAsAsked, png, startImageProvider } from './support/image-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// An image model as a chat model, and as an agent.

const provider = ofFile(startImageProvider, (one) => one.close());
const spine = spineOfFile(() => ({ toml: UNHURRIED + imageBlock({ url: provider.url, params: 'edits = true' }) }));
beforeEach(() => {
  provider.answer((request, response) =>
    paintAsAsked({ ...request, body: { ...request.body, size: '64x64' } }, response),
  );
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const image = png(64, 64).toString('base64');
const asImage = { type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } };
const chat = (content: unknown, more: object = {}) =>
  spine.post('/chat/completions', { model: 'image/test/paint', messages: [{ role: 'user', content }], ...more });

test('a chat gets it in message.images, and is charged for an image', async () => {
  const before = await spine.balance();
  const response = await chat('A tollgate');
  const answer = (await response.json()) as { choices: { message: object }[]; usage: { cost: number } };
  expect([response.status, answer]).toMatchObject([200, { usage: { cost: 0.04 } }]);
  expect(answer.choices[0]!.message).toEqual({ role: 'assistant', content: '', images: [asImage] });
  expect(before.available - (await spine.balance()).available).toBe(40_000n);
  expect(provider.requests.at(-1)!.body).toMatchObject({ prompt: 'A tollgate', n: 1 });
});

test('a stream has it in a delta', async () => {
  const chunks = events(await (await chat('A tollgate', { stream: true })).text()) as {
    choices: { delta: { images?: object[] } }[];
  }[];
  expect(chunks.flatMap(({ choices }) => choices?.[0]?.delta.images ?? [])).toEqual([asImage]);
});

test('an image of the request is edited', async () => {
  const response = await chat([{ type: 'text', text: 'Lower the bar' }, asImage]);
  expect([response.status, await response.json()]).toMatchObject([200, { usage: { cost: 0.04 } }]);
  expect(provider.requests.at(-1)!.path).toBe('/v1/images/edits');
});

test('an agent answers it as a file', async () => {
  const message = { messageId: 'm-1', role: 'user', parts: [{ kind: 'text', text: 'A tollgate' }] };
  const response = await fetch(`${spine.origin}/a2a/image/test/paint`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } }),
  });
  const text = await response.text();
  expect([response.status, text.slice(0, 300)]).toEqual([200, expect.any(String)]);
  expect(text).toContain(image);
  expect(text).toContain('image/png');
});

const tool = async (path: string, args: object, name = 'generate_image') => {
  const response = await fetch(spine.origin + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
  });
  return (await response.json()) as { result: { content: object[]; isError?: boolean; structuredContent?: object } };
};

test('a tool answers it as an image, at its own address and at that of all tools', async () => {
  const content = [{ type: 'image', data: image, mimeType: 'image/png' }];
  const before = await spine.balance();
  expect((await tool('/mcp/image/test/paint', { prompt: 'A tollgate', seed: 7 })).result.content).toEqual(content);
  expect(provider.requests.at(-1)!.body).toMatchObject({ prompt: 'A tollgate', n: 1, seed: 7 });
  expect((await tool('/mcp', { model: 'test/paint', prompt: 'A tollgate' })).result.content).toEqual(content);
  const edited = await tool('/mcp/image/test/paint', { prompt: 'Lower it', images: [asImage.image_url.url] });
  expect([edited.result.content, provider.requests.at(-1)!.path]).toEqual([content, '/v1/images/edits']);
  expect(before.available - (await spine.balance()).available).toBe(120_000n);
  const wrong = await tool('/mcp/image/test/paint', { prompt: 'A tollgate', size: '9x9' });
  expect(wrong.result).toMatchObject({ isError: true });
  const found = await tool('/mcp', { query: 'paint' }, 'find_tools');
  expect(found.result.structuredContent).toMatchObject({
    image_models: [{ model: 'test/paint', price: { per_image: '0.04' }, call: { name: 'generate_image' } }],
  });
});

test('a failure is one, and costs nothing', async () => {
  provider.answer((_request, response) => void response.writeHead(500).end());
  const before = await spine.balance();
  expect((await chat('A tollgate')).status).toBe(500);
  expect((await spine.balance()).available).toBe(before.available);
});
