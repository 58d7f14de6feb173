import { CallToolResultSchema } from '@modelcontextprotocol/core';
import { expect, test } from 'vitest';
import type { FilePart, Part } from '#bridge';
import { callTool } from '../../../mcp/calls/modern-post.ts';
import { startBridgeWorld, type WorldOptions } from './bridge-world.ts';
import { startLineServer, type Line } from './line-target.ts';

async function resultOf(lines: readonly Line[], options: WorldOptions = {}) {
  const { url } = await startLineServer(() => lines);
  const { origin } = await startBridgeWorld({ models: { gpt: { url } }, ...options });
  const { result } = (await callTool({ origin, key: 'alice' }, 'model/gpt', 'chat', { prompt: 'hi' })).message;
  expect(CallToolResultSchema.safeParse(result).error).toBeUndefined();
  return result;
}

const file = (of: Partial<FilePart>): Line => ({
  part: { kind: 'file', mediaType: null, name: null, url: null, bytes: null, ...of } satisfies Part,
});

test('texts that follow each other are one, data is JSON, files are images, sounds, blobs and links', async () => {
  const { content } = await resultOf([
    { text: 'a' },
    { progress: 'not part of it' },
    { text: 'b' },
    { part: { kind: 'data', data: { x: [1] } } },
    { text: 'c' },
    file({ mediaType: 'image/png', bytes: 'aW1n' }),
    file({ mediaType: 'AUDIO/wav', bytes: 'c25k' }),
    file({ mediaType: 'text/plain', name: 'ä b.txt', bytes: 'eA==' }),
    file({ bytes: 'eA', name: '\ud800' }),
    file({ url: 'https://example.com/d/e.pdf?x', mediaType: 'application/pdf' }),
    { end: {} },
  ]);
  expect(content).toEqual([
    { type: 'text', text: 'ab' },
    { type: 'text', text: '{"x":[1]}' },
    { type: 'text', text: 'c' },
    { type: 'image', data: 'aW1n', mimeType: 'image/png' },
    { type: 'audio', data: 'c25k', mimeType: 'AUDIO/wav' },
    { type: 'resource', resource: { uri: 'attachment:///%C3%A4%20b.txt', mimeType: 'text/plain', blob: 'eA==' } },
    { type: 'resource', resource: { uri: 'attachment:///%EF%BF%BD', blob: 'eA==' } },
    { type: 'resource_link', uri: 'https://example.com/d/e.pdf?x', name: 'e.pdf', mimeType: 'application/pdf' },
  ]);
});

test('base64 that is none, or of another kind, is written as clients take it', async () => {
  const { content } = await resultOf([file({ mediaType: 'image/png', bytes: '-_8 =\u0000!' }), { end: {} }]);
  expect(content).toEqual([{ type: 'image', data: '+/8=', mimeType: 'image/png' }]);
});

test('an answer that is longer than may be kept is cut, and says so', async () => {
  const line = 'x'.repeat(10_000);
  const result = await resultOf(
    [...Array.from({ length: 20 }, () => ({ text: line })), file({ bytes: 'eA==' }), { end: {} }],
    {
      replyBytesMax: 100_500,
    },
  );
  expect(result).toMatchObject({
    content: [{ type: 'text', text: line.repeat(10) }],
    _meta: { 'tollgate/finish': 'length' },
  });
  expect(result['content']).toHaveLength(1);
});
