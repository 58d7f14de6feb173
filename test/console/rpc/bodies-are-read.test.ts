import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BATCH_MAX, readBody } from '../../../src/console/rpc/read-body.ts';

// What a body is, before anything is run: json-rpc-2.0 itself would reject over some of these, and take others for
// requests.

const LIMITS = { jsonDepthMax: 16, jsonKeysMax: 1_000 };
const read = (text: string | Uint8Array) => readBody(Buffer.from(text), LIMITS);
const PARSE = { kind: 'refused', error: { code: -32700 } };
const INVALID = { kind: 'refused', error: { code: -32600 } };

describe('a single request', () => {
  test.each(['1', '-0', '1.0', '12345678901234567890', '1e3', '"a\\u0062"', '""'])(
    'keeps its id as it is written: %s',
    async (id) => {
      expect(await read(` {"jsonrpc":"2.0","id": ${id} ,"method":"ping"} `)).toMatchObject({
        kind: 'single',
        entry: { kind: 'call', message: { idText: id, method: 'ping' } },
      });
    },
  );

  test.each([
    ['nothing', ''],
    ['white space', ' \n'],
    ['half an object', '{"jsonrpc":"2.0"'],
    ['words', 'ping'],
    ['two bodies', '{"jsonrpc":"2.0","id":1,"method":"ping"}{}'],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ])('is not JSON: %s', async (_name, text) => expect(await read(text)).toMatchObject(PARSE));

  test.each([
    ['null', 'null', 'object'],
    ['a string', '"ping"', 'object'],
    ['no version', '{"id":1,"method":"ping"}', 'jsonrpc'],
    ['another version', '{"jsonrpc":"1.0","id":1,"method":"ping"}', 'jsonrpc'],
    ['no method', '{"jsonrpc":"2.0","id":1}', 'method'],
    ['a method that is a number', '{"jsonrpc":"2.0","id":1,"method":1}', 'method'],
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{}}', 'esponse'],
    ['a request with a result', '{"jsonrpc":"2.0","id":1,"method":"ping","result":1}', 'result'],
    ['an id of null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', 'id must be'],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', 'id must be'],
    ['an id beyond all numbers', '{"jsonrpc":"2.0","id":1e999,"method":"ping"}', 'id must be'],
    ['a key twice', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"account/key"}', 'duplicate'],
    ['a key twice, once escaped', '{"jsonrpc":"2.0","id":1,"method":"ping","m\\u0065thod":"account/key"}', 'duplicate'],
    ['a parameter twice', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"model":"a","model":"b"}}', 'duplicate'],
    ['a key of _meta twice', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"a":1,"a":2}}}', 'duplicate'],
  ])('is no request: %s', async (_name, text, says) => {
    const body = await read(text);
    expect(body).toMatchObject({ kind: 'single', entry: { kind: 'refused', error: { code: -32600 } } });
    expect(JSON.stringify(body)).toContain(says);
  });

  test.each([
    ['by position', '[]'],
    ['by position, filled', '["test/model"]'],
    ['_meta that is a list', '{"_meta":[]}'],
  ])('has parameters that are not by name: %s', async (_name, params) =>
    expect(await read(`{"jsonrpc":"2.0","id":"7","method":"ping","params":${params}}`)).toMatchObject({
      kind: 'single',
      entry: { kind: 'refused', idText: '"7"', error: { code: -32602 } },
    }),
  );

  test.each(['"x"', '7', 'true'])('is no request with parameters that have no members: %s', async (params) => {
    for (const [id, told] of [
      ['"id":"7",', '"7"'],
      ['', 'null'],
    ])
      expect(await read(`{"jsonrpc":"2.0",${id}"method":"ping","params":${params}}`)).toMatchObject({
        kind: 'single',
        entry: {
          kind: 'refused',
          idText: told,
          error: { code: -32600, message: expect.stringMatching(/^params must be an object, or be left out/) },
        },
      });
  });

  test('has no parameters if they are null', async () => {
    expect(await read('{"jsonrpc":"2.0","id":"7","method":"ping","params":null}')).toMatchObject({
      kind: 'single',
      entry: { kind: 'call', message: { params: undefined, text: '{"jsonrpc":"2.0","id":"7","method":"ping"}' } },
    });
  });

  test('without an id is a notification, by name or by position', async () => {
    for (const params of ['{}', '[]'])
      expect(await read(`{"jsonrpc":"2.0","method":"chat/completions","params":${params}}`)).toEqual({
        kind: 'single',
        entry: { kind: 'silent' },
      });
  });
});

describe('a batch', () => {
  const many = (count: number) =>
    `[${Array.from({ length: count }, (_, id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`).join(' ,\n')}]`;

  test('has its entries in order, the wrong ones among them', async () => {
    const body = await read(
      '\t[ {"jsonrpc":"2.0","id":2,"method":"b"} ,null, [] ,1,{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":1,"method":"a"}] ',
    );
    expect(body).toMatchObject({
      kind: 'batch',
      entries: [
        { kind: 'call', message: { idText: '2' } },
        { kind: 'refused', idText: 'null', error: { code: -32600 } },
        { kind: 'refused', idText: 'null', error: { code: -32600 } },
        { kind: 'refused', idText: 'null', error: { code: -32600 } },
        { kind: 'silent' },
        { kind: 'call', message: { idText: '1' } },
      ],
    });
  });

  test(`has at most ${BATCH_MAX} entries`, async () => {
    expect(await read(many(BATCH_MAX))).toMatchObject({ kind: 'batch', entries: { length: BATCH_MAX } });
    expect(await read(many(BATCH_MAX + 1))).toMatchObject(INVALID);
  });

  test('is not empty', async () => {
    expect(await read('[]')).toMatchObject(INVALID);
    expect(await read(' [ ] ')).toMatchObject(INVALID);
  });

  test.each(['[', '[1', '[1,', '[,]', '[1,]', '[1 2]', '[1]]', '[1] x', '[] x', '[{"a":}]', '["a]', '[nul]'])(
    'is JSON as a whole: %s is not',
    async (text) => expect(await read(text)).toMatchObject(PARSE),
  );
});

test('depth, keys and elements are bounded before anything is built', async () => {
  expect(
    await read(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":${'['.repeat(20)}${']'.repeat(20)}}}`),
  ).toMatchObject(INVALID);
  expect(
    await read(
      `{"jsonrpc":"2.0","id":1,"method":"x","params":{${Array.from({ length: 1_001 }, (_, key) => `"${key}":1`).join(',')}}}`,
    ),
  ).toMatchObject(INVALID);
});

test('it agrees with JSON.parse about what is JSON, and never throws', async () => {
  const pieces = fc.array(
    fc.constantFrom(
      '[',
      ']',
      '{',
      '}',
      ',',
      ':',
      '"',
      '"a"',
      '1',
      'null',
      ' ',
      '\\',
      '"jsonrpc":"2.0"',
      '"id":1',
      '"method":"x"',
      '\u00a0',
    ),
  );
  const texts = fc.oneof(
    pieces.map((all) => all.join('')),
    fc.json(),
    fc.json().map((text) => `[${text}]`),
  );
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      const body = await readBody(Buffer.from(text), { jsonDepthMax: 1_000, jsonKeysMax: 10_000 });
      let valid = true;
      try {
        JSON.parse(text);
      } catch {
        valid = false;
      }
      const isParseError = body.kind === 'refused' && body.error.code === -32700;
      expect(isParseError).toBe(!valid);
    }),
    { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 600 },
  );
});
