import { beforeAll, describe, expect, test } from 'vitest';
import { resultShape } from '../../../src/mcp/shapes/results.ts';
import { readable } from '../../../src/mcp/shapes/shape.ts';
import { type SdkReader, sdkReaders } from './sdk-readers.ts';

let readers: readonly SdkReader[];
beforeAll(async () => {
  readers = await sdkReaders();
});

const text = { type: 'text', text: 'x' };
const say = (...content: readonly unknown[]) => ({ content });
const MODERN = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
type Case = readonly [method: string, result: object];

/** Clients read these as they are. */
const READ: readonly Case[] = [
  ['tools/call', say()],
  ['tools/call', { ...say(text), isError: false, structuredContent: { a: null }, _meta: { a: null } }],
  ['tools/call', say({ ...text, annotations: { audience: ['user', 'assistant'], priority: 0.5 }, _meta: {}, x: null })],
  [
    'tools/call',
    say({ type: 'image', data: 'aGk=', mimeType: 'image/png' }, { type: 'audio', data: '', mimeType: 'a/b' }),
  ],
  ['tools/call', say({ type: 'resource', resource: { uri: 'a:b', text: 'x', blob: null } })],
  ['tools/call', say({ type: 'resource', resource: { uri: 'a:b', blob: 'aGk=', mimeType: 'a/b' } })],
  [
    'tools/call',
    say({
      type: 'resource_link',
      uri: 'a:b',
      name: 'n',
      size: 1,
      annotations: { lastModified: '2026-01-01T00:00:00+01:00' },
    }),
  ],
  [
    'resources/read',
    {
      contents: [
        { uri: 'a:b', text: '' },
        { uri: 'a:b', blob: '', _meta: {} },
      ],
    },
  ],
  ['prompts/get', { messages: [{ role: 'user', content: text }], description: 'd' }],
  ['completion/complete', { completion: { values: ['a'], total: 1, hasMore: false, x: 1 } }],
];

/** Clients read these with less or more in them. */
const MENDED: readonly Case[] = [
  ['tools/call', { content: null, structuredContent: { a: 1 } }],
  ['tools/call', { content: null }],
  ['tools/call', { ...say(text), isError: null }],
  ['tools/call', { ...say(text), _meta: null }],
  ['tools/call', say({ ...text, annotations: null, _meta: null })],
  ['tools/call', say(text, { ...text, annotations: { audience: null, priority: null } })],
  ['tools/call', say({ type: 'resource', resource: { uri: 'a:b', text: 'x', mimeType: null } })],
  ['tools/call', say({ type: 'resource_link', uri: 'a:b', name: 'n', title: null, size: null, icons: null })],
  ['resources/read', { contents: [{ uri: 'a:b', text: 'x', mimeType: null, _meta: null }] }],
  ['prompts/get', { description: null, messages: [{ role: 'user', content: { ...text, annotations: null } }] }],
  ['completion/complete', { completion: { values: [], total: null, hasMore: null } }],
  ['completion/complete', { completion: { values: Array.from({ length: 101 }, () => 'a') } }],
  ['completion/complete', { completion: { values: Array.from({ length: 101 }, () => 'a'), total: null } }],
];

/** No client reads these. */
const UNREADABLE: readonly Case[] = [
  ['tools/call', { content: 'hello' }],
  ['tools/call', say('hello')],
  ['tools/call', say({ text: 'x' })],
  ['tools/call', say({ type: 'text', text: null })],
  ['tools/call', say({ type: 'hologram' })],
  ['tools/call', say({ type: 'image', data: 'aGk=' })],
  ['tools/call', say({ type: 'image', data: '-_-_!', mimeType: 'a/b' })],
  ['tools/call', say({ type: 'resource', resource: { text: 'x' } })],
  ['tools/call', say({ type: 'resource', resource: { uri: 'a:b' } })],
  ['tools/call', say({ type: 'resource_link', uri: 'a:b' })],
  ['tools/call', say({ ...text, annotations: { priority: 7 } })],
  ['tools/call', { ...say(text), isError: 'no' }],
  ['tools/call', { ...say(text), _meta: 'x' }],
  ['resources/read', { contents: null }],
  ['resources/read', { contents: [{ uri: 'a:b' }] }],
  ['resources/read', { contents: [{ text: 'x' }] }],
  ['prompts/get', { messages: [{ role: 'system', content: text }] }],
  ['prompts/get', { messages: [{ role: 'user', content: [text] }] }],
  ['prompts/get', {}],
  ['completion/complete', { completion: null }],
];

const cases = (table: readonly Case[]) => table.map(([method, result]) => [method, JSON.stringify(result)] as const);

/** What a client gets of a result of a server of its own era: the same text, another text, or null for an error. */
function given(method: string, form: SdkReader['form'], written: string): string | null {
  const value = JSON.parse(written) as Record<string, unknown>;
  const shape = resultShape(method, form, form, value);
  const read = shape === null ? { text: written, value } : readable(written, value, shape);
  if (!('text' in read)) return null;
  expect(read.value).toEqual(JSON.parse(read.text));
  expect(value).toEqual(JSON.parse(written));
  return read.text;
}

const sent = (form: SdkReader['form'], written: string) =>
  form === 'legacy' ? written : JSON.stringify({ ...(JSON.parse(written) as object), ...MODERN });

describe('what clients of the SDKs read passes byte by byte', () => {
  test.each(cases(READ))('%s %s', async (method, written) => {
    for (const { form, name, reads } of readers) {
      const result = sent(form, written);
      expect(await reads(method, result), name).toBe(true);
      expect(given(method, form, result), name).toBe(result);
    }
  });
});

describe('what they refuse is made readable where that loses nothing', () => {
  test.each(cases(MENDED))('%s %s', async (method, written) => {
    for (const { form, name, reads } of readers) {
      const result = sent(form, written);
      expect(await reads(method, result), name).toBe(false);
      expect(await reads(method, given(method, form, result)!), name).toBe(true);
    }
  });

  test('outputs that are null, or no object, in each revision', () => {
    const result = (output: string) => `{"content":[],"structuredContent":${output},"resultType":"complete"}`;
    const outputOf = (form: SdkReader['form'], output: string) =>
      (JSON.parse(given('tools/call', form, result(output))!) as Record<string, unknown>)['structuredContent'];
    expect([outputOf('modern', 'null'), outputOf('legacy', 'null')]).toEqual([null, undefined]);
    expect([outputOf('modern', '[1]'), outputOf('legacy', '[1]')]).toEqual([[1], { result: [1] }]);
    expect(given('tools/call', 'legacy', result('[1.0, 12345678901234567890]'))).toContain(
      '[1.0, 12345678901234567890]',
    );
  });

  test('what the modern revision must have is added', async () => {
    const modern = readers.find(({ form }) => form === 'modern')!;
    for (const [method, result] of READ) {
      const written = JSON.stringify(result);
      expect(await modern.reads(method, written)).toBe(false);
      expect(await modern.reads(method, given(method, 'modern', written)!)).toBe(true);
    }
  });
});

describe('what no client reads is an error', () => {
  test.each(cases(UNREADABLE))('%s %s', async (method, written) => {
    for (const { form, name, reads } of readers) {
      const result = sent(form, written);
      expect(await reads(method, result), name).toBe(false);
      expect(given(method, form, result), name).toBeNull();
    }
  });
});

test('a result that asks for input, and a task, have members of their own', () => {
  for (const more of [{ resultType: 'input_required' }, { resultType: 'task' }, { task: { taskId: 'a' } }])
    expect(resultShape('tools/call', 'modern', 'modern', more)).toBeNull();
});
