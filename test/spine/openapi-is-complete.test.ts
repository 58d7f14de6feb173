import { Ajv } from 'ajv';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { routesOf } from '../support/route-table.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// What generators of clients need of /openapi.json, of every operation that the gateway has.

interface Answer {
  readonly description: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>;
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security?: readonly object[];
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: object }[];
  readonly requestBody?: Pick<Answer, 'content'>;
  readonly responses: Readonly<Record<string, Answer>>;
}

let spine: Spine;
let operations: {
  readonly name: string;
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}[];
let document: { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };
beforeAll(async () => {
  spine = await startSpine({ toml: UNHURRIED });
  document = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as typeof document;
  operations = Object.entries(document.paths).flatMap(([path, of]) =>
    Object.entries(of).map(([method, operation]) => ({ name: `${method} ${path}`, path, method, operation })),
  );
});
afterAll(() => spine.stop());

const OTHER_WIRES = ['MCP', 'Agents', 'JSON-RPC'];

test('every route is described, or described at another address, and no HEAD is listed', () => {
  const described = new Set(operations.map(({ name }) => name));
  expect(operations.filter(({ method }) => method === 'head')).toEqual([]);
  const missing = routesOf(spine.app.server)
    .filter(({ method }) => ['GET', 'POST', 'PATCH', 'DELETE'].includes(method))
    .map(({ method, path }) => `${method.toLowerCase()} ${path.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{name}')}`)
    .filter((name) => !described.has(name))
    // Pages, files of pages, web pages, the word at /sse, the same doors below /api/v1, the other file of cards,
    // listening at the doors of agents, and the tunnel, which is a WebSocket.
    .filter(
      (name) =>
        !/ (?:\/|\/docs.*|\/favicon.*|\/(?!api\/)(?:marketplace|models|tools|agents|images|videos|providers|rankings|playground|sign-in|dashboard|admin|assets)(?:\/.*)?|\/openapi.json|(?:\/api\/v1)?\/sse|\/llms.txt|\/api\/v1\/(?:mcp|a2a).*|.*well-known.*|\/(?:a2a|mcp)\/?.*|\/mcp\/|\/api\/v1\/provider\/tunnel)$/.test(
          name,
        ),
    );
  expect(missing).toEqual([]);
});

test('ids are there, and each is one operation', () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]+$/);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
});

test('each has a success with a schema, and the errors of its wire with theirs', () => {
  for (const { name, operation } of operations) {
    const { responses, tags, security } = operation;
    const good = Object.entries(responses).filter(([status]) => status.startsWith('2'));
    expect(good.length, name).toBeGreaterThan(0);
    for (const [status, { content, description }] of good) {
      expect(description, name).not.toBe('');
      if (status === '204' || description === 'The session is over.') continue;
      expect(Object.values(content ?? {}).length, `${name} ${status}`).toBeGreaterThan(0);
      for (const { schema } of Object.values(content!))
        expect(Object.keys(schema ?? {}).length, `${name} ${status}`).toBeGreaterThan(0);
    }
    const bad = Object.entries(responses).filter(([status]) => /^[45]/.test(status));
    expect(
      bad.map(([status]) => status),
      name,
    ).toContain('500');
    if (security?.length !== 0)
      expect(
        bad.map(([status]) => status),
        name,
      ).toEqual(expect.arrayContaining(['401', '429']));
    for (const [status, { content }] of bad) {
      const schema = JSON.stringify(content?.['application/json']?.schema ?? {});
      if (name === 'get /health/ready' && status === '503') continue;
      expect(schema, `${name} ${status}`).toMatch(
        OTHER_WIRES.includes(tags[0]!)
          ? /"jsonrpc"|schemas\/(?:Error|PaymentRequired)/
          : /schemas\/(?:Error|PaymentRequired)/,
      );
    }
  }
});

test('headers are described: those of requests, of answers, and the terms of a payment', () => {
  for (const { name, operation } of operations) {
    expect(
      operation.parameters.map((one) => one.name),
      name,
    ).toContain('X-Request-ID');
    expect(operation.responses['200'] ?? operation.responses['201'] ?? operation.responses['202'], name).toMatchObject({
      headers: { 'x-request-id': {} },
    });
  }
  const chat = document.paths['/api/v1/chat/completions']!['post']!;
  expect(chat.parameters.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['Idempotency-Key', 'x-max-cost', 'x-receipt', 'x-session-id', 'PAYMENT-SIGNATURE']),
  );
  expect(Object.keys(chat.responses['200']!.headers!)).toEqual(
    expect.arrayContaining([
      'x-generation-id',
      'x-cost-usd',
      'x-provider',
      'x-receipt',
      'x-ratelimit-limit-requests',
      'PAYMENT-RESPONSE',
    ]),
  );
  expect(chat.responses['402']).toMatchObject({
    headers: { 'PAYMENT-REQUIRED': {} },
    content: { 'application/json': { schema: { $ref: '#/components/schemas/PaymentRequired' } } },
  });
  for (const path of ['/mcp', '/mcp/{name}', '/a2a', '/a2a/{name}', '/api/v1/rpc'])
    expect(
      document.paths[path]!['post']!.parameters.map(({ name }) => name.toLowerCase()),
      path,
    ).toEqual(expect.arrayContaining(['idempotency-key', 'x-max-cost', 'payment-signature']));
});

test('a body that has to have nothing says nothing of it: an empty `required` is refused by readers of JSON Schema 4', () => {
  const isEmpty = (path: object) => JSON.stringify(path).includes('"required":[]');
  expect(Object.entries(document.paths).flatMap(([path, described]) => (isEmpty(described) ? [path] : []))).toEqual([]);
});

test('chat has its answer and its stream', () => {
  const { content } = document.paths['/api/v1/chat/completions']!['post']!.responses['200']!;
  expect(content).toMatchObject({
    'application/json': { schema: { required: expect.arrayContaining(['choices', 'usage']) as string[] } },
    'text/event-stream': { schema: { properties: { choices: {}, usage: {} } } },
  });
});

test('examples call a model that is there', async () => {
  const text = await (await fetch(`${spine.origin}/openapi.json`)).text();
  expect(text).not.toContain('"demo/sage"');
  expect(text).toContain('"test/model"');
});

test('every schema is one: the gateway does not look when it starts', () => {
  const ajv = new Ajv({ strictSchema: false });
  for (const { name, operation } of operations) {
    const bodies = [operation.requestBody, ...Object.values(operation.responses)].flatMap((one) =>
      Object.values(one?.content ?? {}),
    );
    for (const { schema = {} } of [...operation.parameters, ...bodies])
      expect(ajv.validateSchema(schema), `${name} ${ajv.errorsText()}`).toBe(true);
  }
});
