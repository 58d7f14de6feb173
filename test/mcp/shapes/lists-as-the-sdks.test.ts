import { beforeAll, describe, expect, test } from 'vitest';
import { LISTS, type ListMethod, readableList } from '../../../src/mcp/shapes/lists.ts';
import { type SdkReader, sdkReaders } from './sdk-readers.ts';

let readers: readonly SdkReader[];
beforeAll(async () => {
  readers = await sdkReaders();
});

const T = { name: 't', inputSchema: { type: 'object' } };
const R = { name: 'r', uri: 'test://a' };
const M = { name: 'm', uriTemplate: 'test://{a}' };
const P = { name: 'p' };

const NULLS = { title: null, description: null, icons: null, _meta: null };
const each = (of: object, more: Readonly<Record<string, unknown>>) =>
  Object.entries(more).map(([key, value]) => ({ ...of, [key]: value }));
const input = (inputSchema: unknown) => ({ name: 't', inputSchema });
const output = (outputSchema: unknown) => ({ ...T, outputSchema });

/** Clients read these as they are. */
const READ: readonly (readonly [ListMethod, readonly object[]])[] = [
  [
    'tools/list',
    [
      T,
      input({ type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }),
      input({ type: 'object', $defs: { a: true }, oneOf: [{}], properties: { a: { default: null, enum: [null] } } }),
      output({ type: 'object', properties: {} }),
      {
        ...T,
        title: 'T',
        description: 'd',
        icons: [{ src: 'a:b', sizes: ['any'], theme: 'dark' }],
        _meta: { a: null },
      },
      { ...T, annotations: { title: 't', readOnlyHint: true }, execution: { taskSupport: 'optional' }, unknown: null },
    ],
  ],
  [
    'resources/list',
    [
      R,
      {
        ...R,
        size: 1.5,
        mimeType: 'a/b',
        annotations: { audience: ['user'], priority: 0, lastModified: '2026-02-28T10:00:00Z' },
      },
    ],
  ],
  ['resources/templates/list', [M, { ...M, description: 'd', uriTemplate: 'anything' }]],
  ['prompts/list', [P, { ...P, arguments: [{ name: 'a', required: true, description: 'd' }] }]],
];

/** Clients read these with less or more in them. */
const MENDED: typeof READ = [
  [
    'tools/list',
    [
      ...each(T, { ...NULLS, annotations: null, execution: null, outputSchema: null }),
      { name: 't' },
      ...[null, {}, { type: null }, { type: ['object', 'null'] }, { anyOf: [{}] }].map(input),
      ...each({}, {}).map(input),
      input({ type: 'object', properties: null }),
      input({ type: 'object', required: null, $schema: null }),
      input({ type: 'object', properties: { a: true, b: false, c: null } }),
      { ...T, annotations: { title: null, readOnlyHint: null } },
      { ...T, icons: [{ src: 'a:b', mimeType: null, theme: null }] },
      ...[true, false, { type: ['null', 'array'] }, { type: 'array', items: {} }, { oneOf: [{}] }].map(output),
      output({ type: 'object', required: null }),
    ],
  ],
  [
    'resources/list',
    [
      ...each(R, { ...NULLS, mimeType: null, size: null, annotations: null }),
      { ...R, annotations: { priority: null } },
    ],
  ],
  ['resources/templates/list', each(M, { ...NULLS, mimeType: null, annotations: null })],
  [
    'prompts/list',
    [
      ...each(P, { ...NULLS, arguments: null }),
      { ...P, arguments: [{ name: 'a', description: null, required: null }] },
    ],
  ],
];

/** Nobody reads these. */
const LEFT_OUT: typeof READ = [
  [
    'tools/list',
    [
      ...each(T, { name: 7, title: 1, description: {}, icons: {}, annotations: [], _meta: 'x' }),
      ...[7, 'x', [], { type: 'objekt' }, { type: 'string' }, { type: ['string'] }].map(input),
      { ...T, annotations: { readOnlyHint: 'yes' } },
      { ...T, icons: [{}] },
      { ...T, icons: [{ src: 'a:b', theme: 'blue' }] },
      output(7),
      { inputSchema: { type: 'object' } },
    ],
  ],
  [
    'resources/list',
    [
      ...each(R, { name: null, uri: 7, title: 1, mimeType: 1, size: 'x', annotations: 1 }),
      { ...R, annotations: { priority: 2 } },
      { ...R, annotations: { audience: ['all'] } },
      { ...R, annotations: { lastModified: 'yesterday' } },
      { ...R, annotations: { lastModified: '2026-02-30T10:00:00Z' } },
    ],
  ],
  ['resources/templates/list', each(M, { name: null, uriTemplate: 7, mimeType: 1 })],
  [
    'prompts/list',
    [
      ...each(P, { name: 7, description: 7, arguments: {} }),
      { ...P, arguments: [{}] },
      { ...P, arguments: [{ name: 'a', required: 'yes' }] },
    ],
  ],
];

const PAGE = { ttlMs: 0, cacheScope: 'private', resultType: 'complete' };
const pageOf = (method: ListMethod, items: readonly unknown[], more: object = PAGE) =>
  JSON.stringify({ ...more, [LISTS[method].member]: items });
const itemsOf = (method: ListMethod, text: string) =>
  (JSON.parse(text) as Record<string, readonly { readonly name?: string }[]>)[LISTS[method].member]!;

const cases = (table: typeof READ) =>
  table.flatMap(([method, items]) => items.map((item) => [method, JSON.stringify(item), item] as const));

const readAs = (method: ListMethod, form: SdkReader['form'], text: string) => {
  const read = readableList(method, form, text);
  return 'text' in read ? read.text : null;
};

describe('what clients of the SDKs read passes byte by byte', () => {
  test.each(cases(READ))('%s %s', async (method, _, item) => {
    const text = pageOf(method, [item]);
    for (const { form, name, reads } of readers) {
      expect(await reads(method, text), name).toBe(true);
      expect(readAs(method, form, text), name).toBe(text);
    }
  });
});

describe('what they refuse is made readable where that loses nothing', () => {
  test.each(cases(MENDED))('%s %s', async (method, _, item) => {
    const text = pageOf(method, [{ ...item, n: 1 }, { ...good(method) }]);
    const before = await Promise.all(readers.map(({ reads }) => reads(method, text)));
    expect(before).toContain(false);
    for (const { form, name, reads } of readers) {
      const mended = readAs(method, form, text)!;
      expect(itemsOf(method, mended), name).toHaveLength(2);
      expect(await reads(method, mended), name).toBe(true);
    }
  });
});

const good = (method: ListMethod) => ({ ...(READ.find(([of]) => of === method)![1][0] as object), ...NAMED[method] });
const NAMED = {
  'tools/list': { name: 'other' },
  'resources/list': { uri: 'test://other' },
  'resources/templates/list': { uriTemplate: 'test://other/{a}' },
  'prompts/list': { name: 'other' },
} as const;

describe('what cannot be is left out, and the others stay', () => {
  test.each(cases(LEFT_OUT))('%s %s', async (method, _, item) => {
    const text = pageOf(method, [item, good(method)]);
    for (const { form, name, reads } of readers) {
      expect(await reads(method, text), name).toBe(false);
      const left = readAs(method, form, text)!;
      expect(itemsOf(method, left), name).toEqual([good(method)]);
      expect(await reads(method, left), name).toBe(true);
    }
  });

  test.each([
    ['tools/list', [{ ...T, name: '' }, { ...T, name: 'n'.repeat(257) }, 7, null, []]],
    ['tools/list', [{ ...good('tools/list') }, { ...good('tools/list'), description: 'again' }]],
    [
      'resources/list',
      [
        { ...R, uri: 'no uri' },
        { ...R, uri: '' },
        { ...R, uri: 'http://' },
      ],
    ],
  ] as const)('%s that other clients refuse, or that cannot be called: %j', (method, items) => {
    const text = pageOf(method, [...items, good(method)]);
    for (const form of ['modern', 'legacy'] as const)
      expect(itemsOf(method, readAs(method, form, text)!)).toEqual([good(method)]);
  });

  test('schemas that only clients of 2026-07-28 read are listed to them alone', async () => {
    const odd = input({ type: 'object', properties: 'x', required: 'a' });
    const text = pageOf('tools/list', [odd]);
    for (const { form, name, reads } of readers) {
      expect(await reads('tools/list', text), name).toBe(form === 'modern');
      expect(itemsOf('tools/list', readAs('tools/list', form, text)!), name).toHaveLength(form === 'modern' ? 1 : 0);
    }
  });
});

test.each([
  [{ nextCursor: null, _meta: null }],
  [{ nextCursor: 7, _meta: 'x' }],
  [{ ttlMs: null, cacheScope: 'all', resultType: null }],
  [{ ttlMs: -1.5 }],
])('members of a page that nobody reads do not take its elements along: %j', async (more) => {
  for (const method of Object.keys(LISTS) as ListMethod[]) {
    const text = pageOf(method, [good(method)], more);
    for (const { form, name, reads } of readers)
      expect(await reads(method, readAs(method, form, text)!), name).toBe(true);
  }
});

test('a result without a list is a fault', () => {
  for (const text of ['{}', '{"tools":null}', '{"tools":{}}'])
    expect(readableList('tools/list', 'legacy', text)).toEqual({ fault: 'tools must be a list' });
});

test('only the members that are wrong change', () => {
  const text =
    '{ "tools":[ {"name":"a", "n":1.0,"inputSchema":{"type":"object","x":1e2} , "title":null,"b":12345678901234567890} , {"name":"c","inputSchema":{"type":"object"}} ],"z":[1.0]}';
  expect(readableList('tools/list', 'legacy', text)).toEqual({ text: text.replace(' , "title":null', '') });
});
