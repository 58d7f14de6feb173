import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createMessageParser,
  errorText,
  parseMessage,
  resultText,
  resultTextOf,
} from '../../../src/gateway/json-rpc/message.ts';
import { object, space, value } from '../../foundation/wire/json/json-text.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';

describe('parsing a JSON-RPC message of MCP', () => {
  it.each<readonly [string, string, object]>([
    [
      'a request',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":1}}',
      { kind: 'request', id: 1, idText: '1', method: 'tools/list', params: { a: 1 } },
    ],
    [
      'a request with a string for an id',
      '{"id":"a\\u0062","method":"x","jsonrpc":"2.0"}',
      { kind: 'request', id: 'ab', idText: '"a\\u0062"' },
    ],
    [
      'an id that no double holds',
      '{"jsonrpc":"2.0","id":12345678901234567890,"method":"x"}',
      { kind: 'request', idText: '12345678901234567890' },
    ],
    ['an id with a fraction', '{"jsonrpc":"2.0","id":1.50,"method":"x"}', { kind: 'request', id: 1.5, idText: '1.50' }],
    ['an empty id', '{"jsonrpc":"2.0","id":"","method":"x"}', { kind: 'request', id: '', idText: '""' }],
    [
      'unknown members',
      '{"jsonrpc":"2.0","id":1,"method":"x","trace":[1]}',
      { kind: 'request', value: { jsonrpc: '2.0', id: 1, method: 'x', trace: [1] } },
    ],
    [
      'the same key in arguments',
      '{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":{"a":1,"a":2}}}',
      { kind: 'request' },
    ],
    [
      'a notification',
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      { kind: 'notification', method: 'notifications/initialized' },
    ],
    [
      'a result',
      '{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}',
      { kind: 'response', id: 7, idText: '7', result: { tools: [] } },
    ],
    ['a result that is null', '{"jsonrpc":"2.0","id":7,"result":null}', { kind: 'response', id: 7, result: null }],
    [
      'an error',
      '{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"no","data":{"a":1}}}',
      { kind: 'response', id: 'a', idText: '"a"', error: { code: -32601, message: 'no', data: { a: 1 } } },
    ],
    [
      'an error about what could not be read',
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
      { kind: 'response', id: null, idText: 'null' },
    ],
    [
      'an error without an id',
      '{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
      { kind: 'response', id: null, idText: 'null' },
    ],
  ])('reads %s', (_name, text, wanted) => {
    expect(parseMessage(text)).toMatchObject({ text, ...wanted });
  });

  it('has no params where there are none', () => {
    expect(parseMessage('{"jsonrpc":"2.0","id":1,"method":"x"}')).toHaveProperty('params', undefined);
  });

  it.each(['', ' ', '{', 'tools/list', '{"jsonrpc":"2.0","id":1,"method":"x"', "{'jsonrpc':'2.0'}", '\uFEFF{}'])(
    'finds that %j is not JSON',
    (text) => {
      expect(parseMessage(text)).toBeUndefined();
    },
  );

  it.each([
    ['null', 'null'],
    ['a string', '"tools/list"'],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"x"}]'],
    ['an empty object', '{}'],
    ['another version', '{"jsonrpc":"1.0","id":1,"method":"x"}'],
    ['no version', '{"id":1,"method":"x"}'],
    ['an id of null', '{"jsonrpc":"2.0","id":null,"method":"x"}'],
    ['an id of true', '{"jsonrpc":"2.0","id":true,"method":"x"}'],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"x"}'],
    ['an endless id', '{"jsonrpc":"2.0","id":1e999,"method":"x"}'],
    ['a method that is a number', '{"jsonrpc":"2.0","id":1,"method":1}'],
    ['a method that is null', '{"jsonrpc":"2.0","id":1,"method":null,"result":{}}'],
    ['a method and a result', '{"jsonrpc":"2.0","id":1,"method":"x","result":{}}'],
    ['a method and an error', '{"jsonrpc":"2.0","id":1,"method":"x","error":{"code":1,"message":""}}'],
    ['a result and an error', '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}'],
    ['a result of no request', '{"jsonrpc":"2.0","id":null,"result":{}}'],
    ['an answer without result or error', '{"jsonrpc":"2.0","id":1}'],
    ['an error that is a string', '{"jsonrpc":"2.0","id":1,"error":"no"}'],
    ['an error without a message', '{"jsonrpc":"2.0","id":1,"error":{"code":1}}'],
    ['params that are a list', '{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}'],
    ['params that are a text', '{"jsonrpc":"2.0","id":1,"method":"x","params":"null"}'],
    ['_meta that is a text', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":"null"}}'],
    ['two params that are null', '{"jsonrpc":"2.0","id":1,"method":"x","params":null,"params":{}}'],
    ['_meta that is a list', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":[]}}'],
    ['two methods', '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}'],
    ['two methods, one of them escaped', '{"jsonrpc":"2.0","id":1,"method":"tools/list","m\\u0065thod":"tools/call"}'],
    ['two params', '{"jsonrpc":"2.0","id":1,"method":"x","params":{},"params":{}}'],
    [
      'two names of a tool',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cheap","n\\u0061me":"dear"}}',
    ],
    ['two _meta', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{},"_meta":{}}}'],
    ['a key twice in _meta', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"a":1,"a":1}}}'],
    ['a method that only the prototype has', '{"jsonrpc":"2.0","id":1,"__proto__":{"method":"x"}}'],
  ])('finds no message in %s', (_name, text) => {
    expect(parseMessage(text)).toBeNull();
  });

  it.each([
    ['{"jsonrpc":"2.0","id":1,"method":"x","params" : null}', '{"jsonrpc":"2.0","id":1,"method":"x"}'],
    ['{"params":null,"jsonrpc":"2.0","method":"x"}', '{"jsonrpc":"2.0","method":"x"}'],
    [
      '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":null,"n":1.0}}',
      '{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":1.0}}',
    ],
    [
      '{"jsonrpc":"2.0","id":1,"method":"x","params":{"argument\\u0073":null, "_meta":null}}',
      '{"jsonrpc":"2.0","id":1,"method":"x","params":{"argument\\u0073":{}}}',
    ],
    ['{"jsonrpc":"2.0","id":1,"result":{"_meta":null,"n":null}}', '{"jsonrpc":"2.0","id":1,"result":{"n":null}}'],
    [
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"total":null,"message":null}}',
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}',
    ],
  ])('leaves out null for an optional object: %s', (text, rest) => {
    expect(parseMessage(text)).toEqual(parseMessage(rest));
    expect(parseMessage(text)).toHaveProperty('text', rest);
    const parse = createMessageParser();
    expect([parse(rest), parse(text)].map(partsOf)).toEqual([parse(rest), parse(rest)].map(partsOf));
  });

  it.each([
    '{"jsonrpc":"2.0","id":1,"result":{"_meta":null,"a":1,"a":2}}',
    '{"jsonrpc":"2.0","id":1,"result":{"arguments":null,"structuredContent":null}}',
    '{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":{"arguments":null,"_meta":null},"data":null}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":null}}',
    '{"jsonrpc":"2.0","id":1,"method":"x","params":{"message":null}}',
  ])('leaves all other nulls: %s', (text) => {
    expect(parseMessage(text)).toHaveProperty('text', text);
  });

  it('gives what JSON.parse gives, and the id as it is written', () => {
    const id = fc.constantFrom('0', '-1', '9007199254740993', '1e2', '"a"', '"\\u0061"', '""');
    fc.assert(
      fc.property(id, object, value, space, (idText, params, extra, gap) => {
        fc.pre(!/"(?:_(?:meta|\\u)|arguments|params)/.test(params));
        const text = `{${gap}"extra":${extra},"id"${gap}:${gap}${idText}${gap},"method":"x","params":${params},"jsonrpc":"2.0"}${gap}`;
        const message = parseMessage(text);
        expect(message).toMatchObject({ kind: 'request', idText, method: 'x' });
        expect(isDeepStrictEqual(message!.value['params'], JSON.parse(params))).toBe(true);
        expect([...message!.members.keys()]).toEqual(['extra', 'id', 'method', 'params', 'jsonrpc']);
      }),
      { numRuns: deep ? 100_000 : 400 },
    );
  });

  it('writes answers that it reads', () => {
    expect(parseMessage(resultText('"\\u0061"', '{"n": 1.0}'))).toMatchObject({
      kind: 'response',
      idText: '"\\u0061"',
      text: '{"jsonrpc":"2.0","id":"\\u0061","result":{"n": 1.0}}',
    });
    const error = { code: -32022, message: 'no "such" version', data: { supported: ['a'] } };
    expect(parseMessage(errorText('7', error))).toMatchObject({ kind: 'response', id: 7, error });
    expect(errorText('null', { code: 1, message: 'm' })).toBe(
      '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}',
    );
  });
});

/** What a message says, whatever class it has. */
function partsOf(message: ReturnType<typeof parseMessage>) {
  if (!message) return message;
  const { kind, text, value, members } = message;
  const answer = kind === 'response' ? [message.id, message.idText, message.result, message.error] : [];
  const resultText = kind === 'response' && message.result !== undefined ? resultTextOf(message) : null;
  return { kind, text, value, members, answer, resultText };
}

describe('the parser of one stream', () => {
  /** Results, and texts in their place that change what the message is. */
  const result = fc.oneof(
    { weight: 4, arbitrary: value },
    fc.constantFrom(
      '{},"id":2',
      '1,"result":2',
      '{}}',
      '',
      ' {}',
      '[] ',
      '{"a":1',
      '{},"error":{"code":1,"message":""}',
    ),
  );
  const envelope = fc.constantFrom(
    ['{"jsonrpc":"2.0","id":"a","result":', '}'],
    ['{"id":1,"jsonrpc":"2.0","result": ', ' }'],
    ['{"jsonrpc":"2.0","result":', ',"id":1}'],
    ['{"jsonrpc":"2.0","id":1,"__proto__":{},"result":', '}'],
    ['{"jsonrpc":"2.0","method":"x","params":', '}'],
    ['{"jsonrpc":"2.0","id":1,"method":"x","result":', '}'],
  );

  it('reads each message as parseMessage does', () => {
    const streams = fc.array(fc.tuple(fc.nat({ max: 1 }), result), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(fc.tuple(envelope, envelope), streams, (envelopes, events) => {
        const parse = createMessageParser();
        for (const [which, inside] of events) {
          const text = envelopes[which]!.join(inside);
          expect(isDeepStrictEqual(partsOf(parse(text)), partsOf(parseMessage(text))), text).toBe(true);
        }
      }),
      { numRuns: deep ? 100_000 : 1_000 },
    );
  });

  it('parses the result alone if only that differs', () => {
    const parse = createMessageParser();
    const [first, second] = [1, 2].map((at) => `{"jsonrpc":"2.0","id":"a","result":{"n":${at}}}`) as [string, string];
    const read = parse(first);
    expect(parse(second)).toMatchObject({ result: { n: 2 }, text: second, resultText: '{"n":2}' });
    expect(partsOf(parse(first))).toEqual(partsOf(read));
  });
});
