import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { loadConfig } from '#config';
import { createServer } from '#http';
import { referenceRoutes } from '#pages';
import { anonymousAt } from '../../../src/server/accounts/caller.ts';
import { rpcRoutes } from '../../../src/console/rpc/rpc-routes.ts';
import { request, type RpcReply } from './rpc-world.ts';

// A method is offered where the server has its route, whenever that was registered, and not where it has none.

let server: FastifyInstance;
beforeAll(async () => {
  const config = loadConfig({
    file: 'none.toml',
    text: '',
    env: { TOLLGATE_ADMIN_KEY: 'admin-key-of-the-tests-0123456789' },
    mode: 'production',
  });
  server = createServer({ limits: config.limits, onError: () => {} });
  await referenceRoutes(server, {
    payable: false,
    exampleModel: () => null,
    publicUrl: null,
    ownOrigin: () => null,
    version: '1',
  });
  const pipeline = {
    visitor: async (_headers: object, address: string) => anonymousAt(address),
    count: async () => {},
  };
  const deps = {
    inject: server.inject.bind(server),
    hasRoute: server.hasRoute.bind(server),
    pipeline,
    config,
    version: '1',
    onError: () => {},
  };
  await server.register(rpcRoutes(deps), { prefix: '/api/v1' });
  const body = {
    type: 'object',
    required: ['prompt'],
    properties: { prompt: { type: 'string', description: 'What to draw' }, n: { type: 'integer' } },
  };
  server.post<{ Body: Record<string, unknown> }>(
    '/api/v1/image/generate',
    { schema: { body } },
    async (asked, reply) => {
      const { prompt } = asked.body;
      if (prompt === 'poor')
        return reply
          .code(402)
          .header('payment-required', 'eyJ9')
          .send({
            error: { code: 'insufficient_balance', type: 'insufficient_balance', message: 'pay' },
            x402Version: 2,
            accepts: [],
          });
      if (prompt === 'file')
        return reply
          .header('x-generation-id', 'gen-1')
          .header('x-cost-usd', '0.01')
          .type('image/png')
          .send(Buffer.from([1, 2, 255]));
      return reply
        .header('x-generation-id', 'gen-2')
        .header('x-cost-usd', '0.02')
        .send({ echo: asked.body, headers: Object.keys(asked.headers) });
    },
  );
  await server.ready();
});
afterAll(() => server.close());

const post = async (body: unknown, headers: Record<string, string> = {}) =>
  server.inject({
    method: 'POST',
    url: '/api/v1/rpc',
    payload: body as object,
    headers: { authorization: 'Bearer x', ...headers },
  });
const call = async (params: object) => (await post(request(1, 'images/generate', params))).json<RpcReply>();

test('it is there, with its parameters, and others are not', async () => {
  const { result } = (await post(request(1, 'rpc.discover'))).json<RpcReply>();
  const methods = result!['methods'] as { name: string; params: object[] }[];
  expect(methods.map(({ name }) => name)).toEqual(['images/generate', 'rpc.discover']);
  expect(methods[0]!.params).toEqual([
    { name: 'prompt', description: 'What to draw', required: true, schema: { type: 'string' } },
    { name: 'n', required: false, schema: { type: 'integer' } },
    expect.objectContaining({ name: '_meta', required: false }),
  ]);
  expect((await post(request(1, 'chat/completions', {}))).json()).toMatchObject({ error: { code: -32601 } });
});

test('it is answered, with what its headers say of the money', async () => {
  expect(await call({ prompt: 'x', _meta: { 'tollgate/receipt': true } })).toMatchObject({
    result: {
      echo: { prompt: 'x' },
      _meta: { 'tollgate/generation': { id: 'gen-2', cost: '0.02', currency: 'USDC' } },
    },
  });
});

// What a proxy says comes with the address of the connection's peer, so a route believes it only of a trusted proxy, as
// in a request of its own: see behind-a-proxy.test.ts.
test('a door is told who calls and over which proxy, and nothing else of the request', async () => {
  const response = await post(request(1, 'images/generate', { prompt: 'x' }), {
    'x-api-key': 'k',
    'sign-in-with-x': 's',
    traceparent: 't',
    cookie: 'c',
    'x-forwarded-for': '1.2.3.4',
    forwarded: 'for=1.2.3.4',
    'x-forwarded-host': 'evil',
    'x-forwarded-proto': 'https',
    'x-real-ip': '1.2.3.4',
    via: '1.1 proxy',
    'content-type': 'application/json',
    'transfer-encoding': 'chunked',
    'x-unknown': 'u',
  });
  const { headers } = response.json<{ result: { headers: string[] } }>().result;
  expect(headers.toSorted()).toEqual(
    [
      'accept',
      'authorization',
      'content-length',
      'content-type',
      'host',
      'sign-in-with-x',
      'traceparent',
      'user-agent',
      'x-api-key',
      'x-forwarded-for',
      'x-forwarded-host',
      'x-forwarded-proto',
      'x-request-id',
    ].toSorted(),
  );
});

test('a file is handed on as base64: it may have been paid for', async () => {
  expect(await call({ prompt: 'file' })).toEqual({
    jsonrpc: '2.0',
    id: 1,
    result: {
      content_type: 'image/png',
      base64: 'AQL/',
      _meta: { 'tollgate/generation': { id: 'gen-1', cost: '0.01', currency: 'USDC' } },
    },
  });
});

test('the terms of a payment are handed on', async () => {
  const response = await post(request(1, 'images/generate', { prompt: 'poor' }));
  expect(response.statusCode).toBe(402);
  expect(response.headers['payment-required']).toBe('eyJ9');
  expect(response.json()).toMatchObject({
    error: {
      code: -32011,
      message: 'pay',
      data: { type: 'insufficient_balance', status: 402, x402Version: 2, accepts: [] },
    },
  });
});

test('what its schema refuses is a wrong parameter', async () => {
  expect(await call({ n: 1 })).toMatchObject({ error: { code: -32602, data: { param: 'prompt' } } });
  expect(await call({ prompt: 'x', stream: true })).toMatchObject({
    error: { code: -32602, message: expect.stringContaining('POST /api/v1/image/generate') as string },
  });
});
