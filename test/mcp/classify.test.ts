import { describe, expect, it } from 'vitest';
import { BATCH_MAX, classify, type InboundHeaders } from '../../src/mcp/wire/classify.ts';
import { ENVELOPE, modernHeaders, NO_HEADERS, requestText } from './support/inbound.ts';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const call = { name: 'add', arguments: { a: 1 } };
const notification = (method: string, params?: object) => JSON.stringify({ jsonrpc: '2.0', method, params });
const result = '{"jsonrpc":"2.0","id":"s-1","result":{}}';
const session = (more: Partial<InboundHeaders> = {}): InboundHeaders => ({
  ...NO_HEADERS,
  session: 'abc',
  version: '2025-11-25',
  ...more,
});
const encoded = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

/** What is wrong, the body, the headers, the status and what the error has. */
type Refusal = readonly [string, string, InboundHeaders, number, { readonly code: number; readonly data?: object }];

describe('a request with a modern envelope', () => {
  it.each<readonly [string, string, InboundHeaders]>([
    ['a tool call', requestText('tools/call', call), modernHeaders('tools/call', 'add')],
    [
      'white space around headers',
      requestText('tools/call', call),
      { ...modernHeaders('tools/call\t', '  add  '), version: ' 2026-07-28' },
    ],
    ['a name in Base64', requestText('tools/call', { name: 'añadir' }), modernHeaders('tools/call', encoded('añadir'))],
    [
      'a name that only begins as Base64 does',
      requestText('tools/call', { name: '=?base64?QQ==' }),
      modernHeaders('tools/call', '=?base64?QQ=='),
    ],
    ['a resource', requestText('resources/read', { uri: 'a://b' }), modernHeaders('resources/read', 'a://b')],
    ['a prompt', requestText('prompts/get', { name: 'p' }), modernHeaders('prompts/get', 'p')],
    ['a list, which has no name', requestText('tools/list'), modernHeaders('tools/list')],
    [
      'a session header, which means nothing here',
      requestText('tools/list'),
      { ...modernHeaders('tools/list'), session: 'abc' },
    ],
    ['a call without a name, which the server refuses', requestText('tools/call', {}), modernHeaders('tools/call')],
    ['discovery', requestText('server/discover'), modernHeaders('server/discover')],
    [
      'a subscription',
      requestText('subscriptions/listen', { notifications: {} }),
      modernHeaders('subscriptions/listen'),
    ],
    [
      'all of the envelope',
      requestText(
        'tools/list',
        {},
        { ...ENVELOPE, 'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' }, progressToken: 1 },
      ),
      modernHeaders('tools/list'),
    ],
  ])('is modern: %s', (_name, body, headers) => {
    expect(classify(body, headers)).toMatchObject({
      kind: 'modern',
      version: '2026-07-28',
      capabilities: {},
      acceptsEvents: true,
      message: { id: 7 },
    });
  });

  it('tells what the client can do and what it reads', () => {
    const body = requestText('tools/list', {}, { ...ENVELOPE, [CAPABILITIES]: { sampling: {} } });
    expect(classify(body, { ...modernHeaders('tools/list'), accept: 'application/json' })).toMatchObject({
      capabilities: { sampling: {} },
      acceptsEvents: false,
    });
    expect(classify(body, { ...modernHeaders('tools/list'), accept: 'Text/Event-Stream' })).toMatchObject({
      acceptsEvents: true,
    });
    expect(classify(body, { ...modernHeaders('tools/list'), accept: null })).toMatchObject({ acceptsEvents: false });
  });

  const without = (key: string) => Object.fromEntries(Object.entries(ENVELOPE).filter(([name]) => name !== key));
  it.each<Refusal>([
    [
      'no _meta',
      requestText('tools/list', {}, null),
      modernHeaders('tools/list'),
      400,
      { code: -32602, data: { envelope: { missing: ['_meta'] } } },
    ],
    [
      'no version',
      requestText('tools/list', {}, without(VERSION)),
      modernHeaders('tools/list'),
      400,
      { code: -32602, data: { envelope: { missing: [VERSION] } } },
    ],
    [
      'no capabilities',
      requestText('tools/list', {}, without(CAPABILITIES)),
      modernHeaders('tools/list'),
      400,
      {
        code: -32602,
        data: { envelope: { key: CAPABILITIES, problem: 'is missing, but requests of 2026-07-28 must have it' } },
      },
    ],
    [
      'a version that is a number',
      requestText('tools/list', {}, { ...ENVELOPE, [VERSION]: 1 }),
      modernHeaders('tools/list'),
      400,
      { code: -32602 },
    ],
    [
      'capabilities that are a list',
      requestText('tools/list', {}, { ...ENVELOPE, [CAPABILITIES]: [] }),
      modernHeaders('tools/list'),
      400,
      { code: -32602 },
    ],
    [
      'a version of the future',
      requestText('tools/list', {}, { ...ENVELOPE, [VERSION]: 'v999.0.0' }),
      { ...modernHeaders('tools/list'), version: 'v999.0.0' },
      400,
      { code: -32022, data: { supported: ['2026-07-28'], requested: 'v999.0.0' } },
    ],
    [
      'a legacy version',
      requestText('tools/list', {}, { ...ENVELOPE, [VERSION]: '2025-11-25' }),
      { ...modernHeaders('tools/list'), version: '2025-11-25' },
      400,
      { code: -32022, data: { supported: ['2026-07-28'], requested: '2025-11-25' } },
    ],
    [
      'another version in the header',
      requestText('tools/list'),
      { ...modernHeaders('tools/list'), version: '2025-11-25' },
      400,
      { code: -32020 },
    ],
    [
      'an unknown version in the body only',
      requestText('tools/list', {}, { ...ENVELOPE, [VERSION]: 'v999.0.0' }),
      modernHeaders('tools/list'),
      400,
      { code: -32020 },
    ],
    [
      'no version header',
      requestText('tools/list'),
      { ...modernHeaders('tools/list'), version: null },
      400,
      { code: -32020 },
    ],
    [
      'no method header',
      requestText('tools/list'),
      { ...modernHeaders('tools/list'), method: null },
      400,
      { code: -32020 },
    ],
    ['another method in the header', requestText('tools/list'), modernHeaders('prompts/list'), 400, { code: -32020 }],
    ['a method header in capitals', requestText('tools/list'), modernHeaders('TOOLS/LIST'), 400, { code: -32020 }],
    ['no name header', requestText('tools/call', call), modernHeaders('tools/call'), 400, { code: -32020 }],
    [
      'another name in the header',
      requestText('tools/call', call),
      modernHeaders('tools/call', 'sub'),
      400,
      { code: -32020 },
    ],
    [
      'a name of broken Base64',
      requestText('tools/call', call),
      modernHeaders('tools/call', '=?base64?YWRk!?='),
      400,
      { code: -32020 },
    ],
    [
      'a name of Base64 without padding',
      requestText('tools/call', { name: 'ad' }),
      modernHeaders('tools/call', '=?base64?YWQ?='),
      400,
      { code: -32020 },
    ],
    [
      'a name of Base64 that is no UTF-8',
      requestText('tools/call', call),
      modernHeaders('tools/call', '=?base64?/w==?='),
      400,
      { code: -32020 },
    ],
    [
      'another URI in the header',
      requestText('resources/read', { uri: 'a://b' }),
      modernHeaders('resources/read', 'a://c'),
      400,
      { code: -32020 },
    ],
    ...[
      'initialize',
      'ping',
      'logging/setLevel',
      'resources/subscribe',
      'resources/unsubscribe',
      'tasks/result',
      'unknown/method',
      'constructor',
      '__proto__',
    ].map(
      (method) => [`the method ${method}`, requestText(method), modernHeaders(method), 404, { code: -32601 }] as const,
    ),
  ])('is refused with %s', (_name, body, headers, status, error) => {
    expect(classify(body, headers)).toMatchObject({ kind: 'refused', status, idText: '7', error });
  });

  it('does not repeat a long word of a stranger in full', () => {
    const refused = classify(requestText('x'.repeat(100_000)), modernHeaders('x'.repeat(100_000)));
    expect(JSON.stringify(refused).length).toBeLessThan(500);
  });
});

describe('a legacy request', () => {
  it('opens a session by initialize, whatever version it names', () => {
    const accept = 'application/json, text/event-stream';
    for (const version of ['2025-11-25', '2024-11-05', '1999-01-01', '2026-07-28'])
      expect(
        classify(requestText('initialize', { protocolVersion: version }, null), { ...NO_HEADERS, accept }),
      ).toMatchObject({
        kind: 'initialize',
        version,
        acceptsEvents: true,
      });
    expect(classify(requestText('initialize', {}, null), session())).toMatchObject({
      kind: 'initialize',
      version: null,
      acceptsEvents: false,
    });
  });

  it('cannot open one with a header of the modern era', () => {
    expect(classify(requestText('initialize', {}, null), modernHeaders('initialize'))).toMatchObject({
      kind: 'refused',
      status: 400,
      error: { code: -32020 },
    });
  });

  it.each<readonly [string, string, InboundHeaders]>([
    ['a request', requestText('tools/call', call, null), session()],
    ['a request with other keys in _meta', requestText('tools/call', call, { progressToken: 1 }), session()],
    ['a request without a version header', requestText('tools/list', {}, null), session({ version: null })],
    ['a method that is looked up after the session', requestText('unknown/method', {}, null), session()],
    ['a notification', notification('notifications/initialized'), session()],
    ['a response', result, session()],
    [
      'headers that are not checked in this era',
      requestText('tools/list', {}, null),
      session({ method: 'x', name: 'y' }),
    ],
  ])('belongs to the session that it names: %s', (_name, body, headers) => {
    expect(classify(body, headers)).toMatchObject({ kind: 'legacy', session: 'abc', message: { text: body } });
  });

  it.each([
    'tools/list',
    'tools/call',
    'resources/list',
    'resources/templates/list',
    'resources/read',
    'prompts/list',
    'prompts/get',
    'ping',
  ])('may be posted by itself: %s', (method) => {
    expect(classify(requestText(method, {}, null), NO_HEADERS)).toMatchObject({
      kind: 'bare',
      message: { method },
      acceptsEvents: false,
    });
    expect(classify(requestText(method, {}, null), { ...NO_HEADERS, version: '2025-06-18' })).toMatchObject({
      kind: 'bare',
    });
  });

  it('has no params where they are null', () => {
    const text = '{"jsonrpc":"2.0","id":7,"method":"ping"}';
    expect(classify(`${text.slice(0, -1)},"params":null}`, NO_HEADERS)).toMatchObject({
      kind: 'bare',
      message: { text, params: undefined },
    });
  });

  it.each<readonly [string, string, InboundHeaders, number, number, string]>([
    ['a method that needs a session', requestText('resources/subscribe', {}, null), NO_HEADERS, 400, -32000, '7'],
    ['a modern method without an envelope', requestText('server/discover', {}, null), NO_HEADERS, 404, -32601, '7'],
    ['an unknown method', requestText('constructor', {}, null), NO_HEADERS, 404, -32601, '7'],
    [
      'an unknown version in the header',
      requestText('tools/list', {}, null),
      { ...NO_HEADERS, version: '2020-01-01' },
      400,
      -32000,
      '7',
    ],
    [
      'an unknown version in the header in a session',
      requestText('tools/list', {}, null),
      session({ version: '2020-01-01' }),
      400,
      -32000,
      '7',
    ],
    [
      'a modern version in the header in a session',
      requestText('tools/list', {}, null),
      session({ version: '2026-07-28' }),
      400,
      -32602,
      '7',
    ],
    ['a notification without a session', notification('notifications/initialized'), NO_HEADERS, 400, -32000, 'null'],
    ['a response without a session', result, NO_HEADERS, 400, -32000, 'null'],
    ['a response in an empty session', result, session({ session: '' }), 400, -32000, 'null'],
    ['a response in the modern era', result, session({ version: '2026-07-28' }), 400, -32600, 'null'],
    ['no JSON', '{', NO_HEADERS, 400, -32700, 'null'],
    ['no body', '', NO_HEADERS, 400, -32700, 'null'],
    ['no message', '{"id":7}', NO_HEADERS, 400, -32600, '7'],
    ['params by position', '{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', NO_HEADERS, 400, -32602, '7'],
    ['params that are a text', '{"jsonrpc":"2.0","id":7,"method":"ping","params":"x"}', NO_HEADERS, 400, -32600, '7'],
    [
      'a key twice',
      '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","name":"b"}}',
      NO_HEADERS,
      400,
      -32600,
      'null',
    ],
  ])('is refused: %s', (_name, body, headers, status, code, idText) => {
    expect(classify(body, headers)).toMatchObject({ kind: 'refused', status, idText, error: { code } });
  });
});

describe('a modern notification', () => {
  const cancelled = { requestId: 1 };
  it.each<readonly [string, string, InboundHeaders]>([
    ['by its header', notification('notifications/cancelled', cancelled), modernHeaders('notifications/cancelled')],
    [
      'by its header alone',
      notification('notifications/cancelled', cancelled),
      { ...NO_HEADERS, version: '2026-07-28' },
    ],
    ['by its envelope', notification('notifications/cancelled', { ...cancelled, _meta: ENVELOPE }), NO_HEADERS],
    ['of a method that is unknown', notification('x', {}), modernHeaders('x')],
  ])('is taken %s', (_name, body, headers) => {
    expect(classify(body, headers)).toMatchObject({ kind: 'modern-notification' });
  });

  it.each<readonly [string, string, InboundHeaders, number]>([
    [
      'another method in the header',
      notification('notifications/cancelled', cancelled),
      modernHeaders('notifications/progress'),
      -32020,
    ],
    [
      'another version in the header',
      notification('x', { _meta: ENVELOPE }),
      { ...NO_HEADERS, version: '2025-11-25' },
      -32020,
    ],
    ['a version that is a number', notification('x', { _meta: { [VERSION]: 1 } }), modernHeaders('x'), -32602],
    ['a version that is not supported', notification('x', { _meta: { [VERSION]: '2027-01-01' } }), NO_HEADERS, -32022],
  ])('is refused with %s', (_name, body, headers, code) => {
    expect(classify(body, headers)).toMatchObject({ kind: 'refused', status: 400, idText: 'null', error: { code } });
  });
});

describe('a batch', () => {
  const list = requestText('tools/list', {}, null);
  it('is taken apart, each message as it is written', () => {
    const texts = [
      list,
      '{ "jsonrpc":"2.0","id" :1.0,"method":"ping" }',
      notification('notifications/initialized'),
      result,
    ];
    expect(classify(` [${texts.join(' ,\n')}] `, session({ version: '2025-03-26' }))).toMatchObject({
      kind: 'batch',
      texts,
      session: 'abc',
    });
    expect(classify(`[${list}]`, NO_HEADERS)).toMatchObject({ kind: 'batch', texts: [list], session: null });
  });

  it.each<readonly [string, string, InboundHeaders, number]>([
    ['nothing in it', '[]', NO_HEADERS, -32600],
    ['what is no message', `[${list},null]`, NO_HEADERS, -32600],
    ['a batch in it', `[[${list}]]`, NO_HEADERS, -32600],
    ['a modern request', `[${list},${requestText('tools/list')}]`, NO_HEADERS, -32600],
    ['a modern notification', `[${notification('x', { _meta: ENVELOPE })}]`, NO_HEADERS, -32600],
    ['a modern header', `[${list}]`, modernHeaders('tools/list'), -32600],
    ['initialize', `[${requestText('initialize', {}, null)}]`, NO_HEADERS, -32600],
    ['an unknown version in the header', `[${list}]`, { ...NO_HEADERS, version: '2020-01-01' }, -32000],
    ['too many messages', `[${Array.from({ length: BATCH_MAX + 1 }, () => list).join(',')}]`, NO_HEADERS, -32600],
    ['no end', `[${list}`, NO_HEADERS, -32700],
    ['more than JSON', `[${list}] x`, NO_HEADERS, -32700],
    ['a comma too much', `[${list},]`, NO_HEADERS, -32700],
  ])('is refused with %s', (_name, body, headers, code) => {
    expect(classify(body, headers)).toMatchObject({ kind: 'refused', status: 400, idText: 'null', error: { code } });
  });

  it('may hold so many messages', () => {
    expect(classify(`[${Array.from({ length: BATCH_MAX }, () => list).join(',')}]`, NO_HEADERS)).toMatchObject({
      kind: 'batch',
    });
  });
});
