import { describe, expect, test } from 'vitest';
import { ERROR_CODES, GatewayError } from '#errors';
import { HTTP_ERRORS, toHttpError } from '#http';
import { fromHttpError, RPC_ERRORS, toRpcFault } from '../../../src/console/rpc/errors-rpc.ts';
import { MCP_ERRORS } from '../../../src/mcp/wire/errors-mcp.ts';
import { openSocket } from '../../support/raw-http.ts';
import { ask } from '../../support/spine.ts';
import { AGENT, message, request, TOOLS, useRpcWorld } from './rpc-world.ts';

const world = useRpcWorld();
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe('the table', () => {
  test.each(ERROR_CODES)('%s is the same on MCP, and survives the way through HTTP', (code) => {
    expect(RPC_ERRORS[code].code).toBe(MCP_ERRORS[code].code);
    const error = new GatewayError(code, 'what is wrong', { param: 'a.b', retryAfterS: 7 });
    const { status, headers, body } = toHttpError(error);
    expect(fromHttpError(status, headers, JSON.stringify(body))).toEqual(toRpcFault(error));
    expect(toRpcFault(error)).toMatchObject({
      error: {
        code: RPC_ERRORS[code].code,
        message: 'what is wrong',
        data: { type: code, param: 'a.b', retry_after_s: 7, status: HTTP_ERRORS[code].status },
      },
      headers: { 'retry-after': '7' },
    });
  });

  test('our own codes are within their range', () => {
    for (const { code } of Object.values(RPC_ERRORS))
      expect(code > -32700 && code < -32600 ? [-32602, -32603] : range(-32019, -32010)).toContain(code);
  });
});

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe('bodies of other forms', () => {
  test('of images: a word for a code', () => {
    const text = JSON.stringify({ error: { code: 'unprocessable', message: 'too wide', type: 'unprocessable' } });
    expect(fromHttpError(422, {}, text)).toMatchObject({
      error: { code: -32602, message: 'too wide', data: { type: 'unprocessable', status: 422 } },
    });
  });

  test('of x402: the terms are handed on', () => {
    const terms = { x402Version: 2, accepts: [{ scheme: 'exact' }], resource: { url: 'x' } };
    const text = JSON.stringify({
      error: { type: 'insufficient_balance', message: 'pay', code: 402, param: null },
      ...terms,
      secret: 1,
    });
    const { error, status } = fromHttpError(402, {}, text);
    expect(status).toBe(402);
    expect(error).toEqual({
      code: -32011,
      message: 'pay',
      data: { type: 'insufficient_balance', status: 402, ...terms },
    });
  });

  test.each(['', '<html>', '[]', 'null', '{"error":"x"}', '{"error":{"type":{"x":1},"message":7}}'])(
    'of nobody: %s',
    (text) => {
      expect(fromHttpError(502, {}, text).error).toMatchObject({
        code: -32603,
        data: { type: 'internal', status: 502 },
      });
      expect(fromHttpError(404, {}, text).error).toMatchObject({ code: -32013 });
      expect(fromHttpError(418, {}, text).error).toMatchObject({ code: -32602 });
    },
  );
});

test.each([
  ['no key', '', -32010, 401],
  ['a key that is none', 'Bearer svc-sk-v2-nothing', -32010, 401],
])('%s: the status of the single reply says it too, with how to do it', async (_name, authorization, code, status) => {
  for (const [method, params] of [
    ['account/balance', {}],
    ['chat/completions', ask('hello')],
    ['tools/list', {}],
    ['tasks/get', { id: 'x' }],
  ] as const) {
    const response = await world.post(
      request('q', method, params),
      authorization === '' ? { authorization: 'Basic eA==' } : { authorization },
    );
    expect(response.status).toBe(status);
    expect(response.headers.get('www-authenticate')).toContain('Bearer');
    expect(await response.json()).toMatchObject({
      jsonrpc: '2.0',
      id: 'q',
      error: { code, data: expect.anything() as object },
    });
  }
});

test('no money: 402 alone, 200 in a batch; what tools and agents say of it stays a result', async () => {
  const { key } = await world.spine.tenant('low', '0.000001');
  const entries = [
    request(1, 'chat/completions', ask('hello')),
    request(2, 'tools/call', { service: TOOLS, name: 'test_simple_text', arguments: {} }),
    request(3, 'message/send', { agent: AGENT, message: message('echo hi') }),
  ];
  const alone = await world.post(entries[0], bearer(key));
  expect(alone.status).toBe(402);
  expect(await alone.json()).toMatchObject({
    id: 1,
    error: { code: -32011, data: { type: 'insufficient_balance', status: 402 } },
  });
  const response = await world.post(entries, bearer(key));
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject([
    { error: { code: -32011 } },
    { result: { isError: true, structuredContent: { x402Version: 2 } } },
    { result: { kind: 'task', status: { state: 'input-required' } } },
  ]);
});

test('an account that was never funded: the status is that of money', async () => {
  const { key } = await world.spine.tenant('never', '0');
  const response = await world.post(request(1, 'chat/completions', ask('hello')), bearer(key));
  expect(response.status).toBe(402);
  expect(await response.json()).toMatchObject({
    error: { code: -32011, data: { type: 'escrow_not_setup', status: 424 } },
  });
});

test('errors of tools and agents pass as they are', async () => {
  for (const [service, name] of [
    [TOOLS, 'no_such_tool'],
    [TOOLS, 7],
    ['no/such', 'x'],
  ] as const) {
    const direct = await (
      await world.spine.post(`/mcp/${service}`, request('x', 'tools/call', { name, arguments: {} }))
    ).text();
    const here = await (await world.post(request('x', 'tools/call', { service, name, arguments: {} }))).text();
    expect(JSON.parse(here.replaceAll(/gen-\w+/g, ''))).toEqual(JSON.parse(direct.replaceAll(/gen-\w+/g, '')));
  }
  expect(await world.call('tasks/get', { agent: AGENT, id: 'none' })).toMatchObject({
    error: { code: -32001, message: 'Task not found' },
  });
});

test('what a method does not take is named', async () => {
  expect(await world.call('chat/completions', { model: 'test/model', messages: [] })).toMatchObject({
    error: { code: -32602, data: { type: 'invalid_request', param: 'messages', status: 400 } },
  });
  expect(await world.call('models/list', { type: 'nothing' })).toMatchObject({
    error: { code: -32602, data: { param: 'type' } },
  });
  expect(await world.call('chat/completions', ask('hi', { model: 'no/such' }))).toMatchObject({
    error: { code: -32013, message: 'Model not found: no/such', data: { type: 'invalid_model', status: 404 } },
  });
});

test.each([
  ['no JSON', '{', {}, 200, -32700],
  ['nothing', '', {}, 200, -32700],
  ['an empty batch', '[]', {}, 200, -32600],
  ['text', '{}', { 'content-type': 'text/plain' }, 200, -32600],
  ['coded wrongly', '{}', { 'content-encoding': 'gzip' }, 200, -32600],
  ['coded strangely', '{}', { 'content-encoding': 'compress' }, 415, -32602],
  ['too deep', `${'['.repeat(100)}${']'.repeat(100)}`, {}, 200, -32600],
  ['too large', ' '.repeat(10 * 1024 * 1024 + 1), {}, 413, -32015],
])('a body that is not taken: %s', async (_name, body, headers, status, code) => {
  const response = await world.spine.post('/rpc', body, headers);
  expect(response.status).toBe(status);
  expect(response.headers.get('content-type')).toContain('application/json');
  const told = (await response.json()) as { readonly error: { readonly data?: unknown } };
  expect(told).toMatchObject({ jsonrpc: '2.0', id: null, error: { code } });
  if (status === 413) expect(told.error.data).toEqual({ type: 'payload_too_large', status });
});

test('another method is refused with the facts of the error, too', async () => {
  const response = await fetch(`${world.spine.origin}/api/v1/rpc`);
  expect(response.status).toBe(405);
  expect(await response.json()).toMatchObject({ error: { data: { type: 'method_not_allowed', status: 405 } } });
});

test('a credential that came twice is refused, as at every door', async () => {
  const { key } = world.spine;
  const body = JSON.stringify(request(1, 'account/balance'));
  const socket = await openSocket(world.spine.origin);
  const answer = new Promise<string>((resolve) => {
    let text = '';
    socket.on('data', (bytes: Buffer) => (text += bytes.toString()));
    socket.on('close', () => resolve(text));
  });
  socket.write(
    `POST /api/v1/rpc HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${key}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  expect(await answer).toMatch(/^HTTP\/1.1 401[^]*sent more than once/);
});
