import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KINDS_OF_MODELS } from '#config/model-kinds';
import { withoutReferences } from '../support/open-api.ts';
import { routesOf } from '../support/route-table.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// What generators of clients need of /openapi.json, of every operation that the gateway has.

interface Answer {
  readonly description: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<
    Record<
      string,
      {
        readonly schema?: object;
        readonly example?: unknown;
        readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
      }
    >
  >;
  readonly links?: Readonly<
    Record<string, { readonly operationId: string; readonly parameters?: Readonly<Record<string, string>> }>
  >;
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
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
/** The document as it is served, with its references. */
let text: string;
beforeAll(async () => {
  spine = await startSpine({ toml: UNHURRIED });
  text = await (await fetch(`${spine.origin}/openapi.json`)).text();
  document = withoutReferences(JSON.parse(text) as Record<string, unknown>) as typeof document;
  operations = Object.entries(document.paths).flatMap(([path, of]) =>
    Object.entries(of).map(([method, operation]) => ({ name: `${method} ${path}`, path, method, operation })),
  );
});
afterAll(() => spine.stop());

test('no two operations have the same summary: the list of the reference has nothing else', () => {
  const summaries = operations.map(({ operation: { summary } }) => summary);
  expect(summaries.filter((summary, at) => summaries.indexOf(summary) !== at)).toEqual([]);
});

test('every route is described, or described at another address, and no HEAD is listed', () => {
  const described = new Set(operations.map(({ name }) => name));
  expect(operations.filter(({ method }) => method === 'head')).toEqual([]);
  const missing = routesOf(spine.app.server)
    .filter(({ method }) => ['GET', 'POST', 'PATCH', 'DELETE'].includes(method))
    .map(
      ({ method, path }) => `${method.toLowerCase()} ${path.replaceAll(/\/:(\w+)/g, '/{$1}').replace(/\*$/, '{name}')}`,
    )
    .filter((name) => !described.has(name))
    // Pages, files of pages, web pages, the word at /sse, the same routes below /api/v1, the other file of cards,
    // listening at the routes of agents, the tunnel and /realtime, which are WebSockets, and, without chains, all that
    // needs them.
    .filter(
      (name) =>
        !/ (?:\/api\/v1\/(?:topup|deposits|withdrawals|wallets)(?:\/.*)?|\/|\/docs.*|\/favicon.*|\/(?!api\/)(?:marketplace|models|tools|agents|images|videos|providers|rankings|playground|authorize|sign-in|dashboard|admin|assets)(?:\/.*)?|\/openapi.json|(?:\/api\/v1)?\/sse|\/llms.txt|\/api\/v1\/(?:mcp|a2a).*|.*well-known.*|\/(?:a2a|mcp)\/?.*|\/mcp\/|\/api\/v1\/(?:provider\/tunnel|realtime))$/.test(
          name,
        ),
    );
  expect(missing).toEqual([]);
});

test('ids are there, short, and each is one operation', () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]{2,31}$/);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
});

test('each says in a sentence what it does', () => {
  const silent = operations.filter(({ operation }) => !/[.:)`]$/.test(operation.description?.trim() ?? ''));
  expect(silent.map(({ name }) => name)).toEqual([]);
});

test('each has a success with a schema, and the errors of its wire with theirs', () => {
  for (const { name, operation } of operations) {
    const { responses, security } = operation;
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
      if (name === 'get /health/ready' && status === '503') continue;
      const schema: { readonly properties?: object } = content?.['application/json']?.schema ?? {};
      // Errors of Cohere's API have their members at the top.
      const member = name === 'post /api/v2/rerank' ? 'message' : 'error';
      expect(Object.keys(schema.properties ?? {}), `${name} ${status}`).toContain(member);
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
    content: { 'application/json': { schema: { required: ['error'], properties: { accepts: {} } } } },
  });
  for (const path of ['/mcp', '/mcp/{name}', '/a2a', '/a2a/{name}', '/api/v1/rpc'])
    expect(
      document.paths[path]!['post']!.parameters.map(({ name }) => name.toLowerCase()),
      path,
    ).toEqual(expect.arrayContaining(['idempotency-key', 'x-max-cost', 'payment-signature']));
});

test('a body that has to have nothing says nothing of it: an empty `required` is refused by readers of JSON Schema 4', () => {
  expect(text).not.toContain('"required":[]');
});

test('chat has its answer and its stream', () => {
  const { content } = document.paths['/api/v1/chat/completions']!['post']!.responses['200']!;
  expect(content).toMatchObject({
    'application/json': { schema: { required: expect.arrayContaining(['choices', 'usage']) as string[] } },
    'text/event-stream': { schema: { properties: { choices: {}, usage: {} } } },
  });
});

test('examples call a model that is there', () => {
  expect(text).not.toContain('"demo/chat"');
  expect(text).toContain('"test/model"');
});

describe('examples', () => {
  /** Types of files, and answers that need more than the gateway of this test. */
  const without = /^(?:audio|image|video)\/|^application\/zip/;

  test('each answer has one, and it is what the schema says', () => {
    const ajv = new Ajv({ strict: false, validateFormats: false });
    const missing: string[] = [];
    const wrong: string[] = [];
    for (const { name, operation } of operations)
      for (const [status, { content = {} }] of Object.entries(operation.responses)) {
        if (!status.startsWith('2')) continue;
        for (const [type, { schema = {}, example, examples }] of Object.entries(content)) {
          if (without.test(type)) continue;
          const value = example ?? examples?.['answer']?.value;
          if (value === undefined) missing.push(`${name} ${status} ${type}`);
          else if (!ajv.validate(schema, value)) wrong.push(`${name} ${status} ${type}: ${ajv.errorsText()}`);
        }
      }
    expect(
      { missing, wrong },
      'src/console/pages/reference/answer-examples.json has the examples, by the titles of schemas',
    ).toEqual({ missing: [], wrong: [] });
  });

  test('each request has one, and it is what the schema says', () => {
    const ajv = new Ajv({ strict: false, validateFormats: false });
    const found = operations.flatMap(({ name, operation }) =>
      Object.entries(operation.requestBody?.content ?? {}).map(([type, { schema = {}, example }]) => {
        if (example === undefined) return `${name} ${type}: none`;
        return ajv.validate(schema, example) ? null : `${name} ${type}: ${ajv.errorsText()}`;
      }),
    );
    expect(found.filter((one) => one !== null)).toEqual([]);
  });

  test('links lead to operations, and name parameters that these have', () => {
    const byId = new Map(operations.map(({ operation }) => [operation.operationId, operation]));
    let links = 0;
    for (const { name, operation } of operations)
      for (const answer of Object.values(operation.responses))
        for (const { operationId, parameters = {} } of Object.values(answer.links ?? {})) {
          const target = byId.get(operationId);
          expect(target, `${name} to ${operationId}`).toBeDefined();
          const names = target!.parameters.map((one) => one.name);
          expect(names, `${name} to ${operationId}`).toEqual(expect.arrayContaining(Object.keys(parameters)));
          links++;
        }
    expect(links).toBeGreaterThan(30);
  });
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

/** Every schema of the document with the place where it stands, by the keywords that hold schemas. */
function schemasIn(part: unknown, at: string, found: [place: string, schema: Record<string, unknown>][]): void {
  if (Array.isArray(part)) return part.forEach((one, index) => schemasIn(one, `${at}/${index}`, found));
  if (typeof part !== 'object' || part === null) return;
  for (const [name, inner] of Object.entries(part)) {
    if (['example', 'examples', 'default', 'enum', 'const'].includes(name) && !at.endsWith('/properties')) continue;
    schemasIn(inner, `${at}/${name}`, found);
  }
  found.push([at, part as Record<string, unknown>]);
}

describe('for those who make clients of it', () => {
  let schemas: [place: string, schema: Record<string, unknown>][];
  beforeAll(() => {
    schemas = [];
    schemasIn(JSON.parse(text), '', schemas);
  });
  /** Where a schema is wrong for those who make types of it. What is behind two negations they do not read. */
  const places = (wrong: (schema: Record<string, unknown>) => boolean) =>
    schemas.flatMap(([place, schema]) => (place.includes('/not/not') || !wrong(schema) ? [] : [place]));

  // A bound against growth that nobody intended. On 2026-11-25 the document has 597 KiB for 135 operations: 210 for
  // named schemas, 147 for answers, 61 for the references from operations to shared errors, and 41 for these errors. An
  // operation takes 2 to 4 KiB, a new status of calls 2.4. If such additions reach the bound, raise it and correct the
  // numbers. If one change adds more, look for a schema or an example that occurs twice, and name it.
  test('it is small enough to be read', () => {
    expect(Buffer.byteLength(text)).toBeLessThan(operations.length * 5 * 1024);
  });

  test('an object that occurs twice has a name, and is described once', () => {
    const seen = new Map<string, string[]>();
    for (const [place, { description: _, ...schema }] of schemas) {
      const properties = schema['properties'] as object | undefined;
      if (properties === undefined || Object.keys(properties).length < 3 || place.includes('/not/not')) continue;
      const key = JSON.stringify(schema);
      seen.set(key, [...(seen.get(key) ?? []), place]);
    }
    // The same object with other words around it.
    const same = /components\/schemas\/(?:JsonRpcError|AgentError|ApiKey)/;
    expect([...seen.values()].filter((all) => all.length > 1 && !all.some((place) => same.test(place)))).toEqual([]);
  });

  test('a value has one type, and may be null beside it', () => {
    const types = ({ type }: Record<string, unknown>) =>
      Array.isArray(type) ? type.filter((one) => one !== 'null').length !== 1 : type === 'null';
    // Of what has a name, null is an alternative where it is used.
    expect(places(types).filter((place) => !place.endsWith('/anyOf/1'))).toEqual([]);
    expect(places(({ enum: values }) => Array.isArray(values) && values.every((value) => value === null))).toEqual([]);
  });

  test('what has a name is never null: it is at the places that use it', () => {
    const { components } = JSON.parse(text) as { readonly components: { readonly schemas: object } };
    const isNull = ({ type }: Record<string, unknown>) => Array.isArray(type) && type.includes('null');
    const found = Object.entries(components.schemas as Record<string, Record<string, unknown>>).filter(
      ([, schema]) => isNull(schema) || ((schema['anyOf'] ?? []) as Record<string, unknown>[]).some(isNull),
    );
    expect(found.map(([name]) => name)).toEqual([]);
  });

  test('enumerations are of texts, or of numbers that are not null', () => {
    const isHard = ({ enum: values }: Record<string, unknown>) =>
      Array.isArray(values) &&
      values.some((value) => typeof value === 'boolean' || (typeof value === 'number' && values.includes(null)));
    const isOne = ({ const: only }: Record<string, unknown>) => typeof only === 'boolean' || typeof only === 'number';
    expect(places((schema) => isHard(schema) || isOne(schema))).toEqual([]);
  });

  test('a form stands before JSON: some generators know only the first', () => {
    const types = operations.map(({ operation }) => Object.keys(operation.requestBody?.content ?? {}));
    expect(types.filter((all) => all.includes('multipart/form-data') && all[0] !== 'multipart/form-data')).toEqual([]);
  });

  test('an array says what is in it', () => {
    const isArray = ({ type }: Record<string, unknown>) =>
      type === 'array' || (Array.isArray(type) && type.includes('array'));
    expect(places((schema) => isArray(schema) && schema['items'] === undefined)).toEqual([]);
  });

  test('nothing but types stands beside the properties of a body', () => {
    const beside = (schema: Record<string, unknown>) =>
      schema['properties'] !== undefined &&
      ['anyOf', 'oneOf', 'allOf'].some((keyword) => schema[keyword] !== undefined);
    expect(places(beside)).toEqual([]);
  });

  test('every address can be refused, and every chapter is described', () => {
    const { tags } = JSON.parse(text) as { readonly tags: readonly { readonly name: string }[] };
    for (const { name, operation } of operations) {
      expect(Object.keys(operation.responses).filter((status) => status.startsWith('4')).length, name).toBeGreaterThan(
        0,
      );
      expect(tags.map((tag) => tag.name)).toContain(operation.tags[0]);
    }
  });

  test('forms have files, and what is a file of lines says so', () => {
    const form = (path: string) => document.paths[path]!['post']!.requestBody!.content!['multipart/form-data']!.schema;
    const file = { type: 'string', format: 'binary' };
    for (const path of ['/api/v1/image/edit', '/api/v1/images/edits'])
      expect(form(path)).toMatchObject({
        required: ['prompt', 'image'],
        properties: { image: { type: 'array', items: file }, mask: file, n: { type: 'integer' } },
      });
    expect(form('/api/v1/videos')).toMatchObject({ properties: { input_reference: file, seconds: {} } });
    for (const path of ['/api/v1/generations', '/api/v1/analytics/own'])
      expect(Object.keys(document.paths[path]!['get']!.responses['200']!.content!)).toEqual([
        'application/json',
        'text/csv',
      ]);
  });

  test('what needs chains is left out where there are none', () => {
    expect(
      Object.keys(document.paths).filter((path) => /topup|deposits|withdrawals|wallets|treasury/.test(path)),
    ).toEqual([]);
  });
});

test('an error has the form that its address describes', async () => {
  const cases: readonly (readonly [path: string, body: unknown, headers?: Record<string, string>])[] = [
    ['/mcp', { jsonrpc: '2.0', id: 0.5, method: 'none' }],
    ['/api/v1/chat/completions', []],
    ['/api/v1/responses', []],
    ...KINDS_OF_MODELS.map(([, { paths }]) => [`/api/v1${paths[0]}`, []] as const),
    ['/api/v1/keys', []],
    ['/api/v1/messages', []],
    ['/api/v1/messages/count_tokens', []],
    ['/api/v1/image/generate', []],
    ['/api/v1/image/generate/quote', []],
    ['/api/v1/images/generations', []],
    ['/api/v1/video/queue', []],
    ['/api/v1/video/quote', []],
    ['/api/v1/video/cancel', { task_id: 'none' }],
    ['/api/v1/videos', []],
    ['/api/v1/rpc', []],
    ['/mcp', []],
    ['/a2a', []],
  ];
  const ajv = new Ajv({ strict: false, validateFormats: false });
  for (const [path, body] of cases) {
    for (const authorization of [`Bearer ${spine.key}`, 'Bearer svc-sk-v2-nobody']) {
      const response = await fetch(spine.origin + path, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const answer: unknown = await response.json();
      const { responses } = document.paths[path]!['post']!;
      const { content } = responses[response.status] ?? responses['default']!;
      const matches = ajv.validate(content!['application/json']!.schema!, answer);
      expect(matches, `${path} ${response.status} ${JSON.stringify(answer)} ${ajv.errorsText()}`).toBe(true);
    }
  }
});

test.each([
  ['/api/v1/models?after_id=nobody', '/api/v1/models'],
  ['/api/v1/models/nobody', '/api/v1/models/{name}'],
])('an error of models has the form of either API: %s', async (address, path) => {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  for (const headers of [{}, { 'anthropic-version': '2023-06-01' }]) {
    const response = await fetch(spine.origin + address, { headers: headers as Record<string, string> });
    const answer: unknown = await response.json();
    if (response.status === 200) continue;
    const { content } = document.paths[path]!['get']!.responses[response.status]!;
    const matches = ajv.validate(content!['application/json']!.schema!, answer);
    expect(matches, `${address} ${JSON.stringify(answer)} ${ajv.errorsText()}`).toBe(true);
  }
});
