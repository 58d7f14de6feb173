import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, startSpine, type Spine } from '../support/spine.ts';
import { readOpenApi } from '../support/open-api.ts';

// What anybody may see: ping, health, metrics, the description of the interface.

const METRICS_KEY = 'key-of-metrics-0123456789abcdefghij';

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({ env: { TOLLGATE_METRICS_KEY: METRICS_KEY } });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const get = (path: string, headers: Record<string, string> = {}) => fetch(`${spine.origin}${path}`, { headers });

test('ping', async () => {
  const response = await get('/api/v1/ping');
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toContain('text/plain');
  expect(await response.text()).toBe('pong');
});

test('health', async () => {
  // The first check writes to a new database.
  await expect.poll(async () => (await get('/health/ready')).status, { timeout: 60_000 }).toBe(200);
  for (const path of ['/health/live', '/health/ready']) {
    const response = await get(path);
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toMatchObject({ status: 'ok' });
  }
});

test('metrics: Prometheus text with the names of the GenAI conventions, without secrets or names of consumers', async () => {
  for (const stream of [false, true])
    await (
      await spine.post(
        '/chat/completions',
        ask('hello !tokens:3', { stream, user: 'user-canary', metadata: { x: 'metadata-canary' } }),
      )
    ).text();
  await spine.post('/chat/completions', ask('hello', { model: 'test/nowhere' }));
  await spine.quiet();
  const response = await get('/metrics', { authorization: `Bearer ${spine.adminKey}` });
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4|^application\/openmetrics-text/);
  const text = await response.text();
  expect(text).toMatch(/^gen_ai_\S+/m);
  expect(text).toMatch(/^# TYPE gen_ai_\S+ histogram$/m);
  for (const line of text.split('\n').filter((one) => one !== '' && !one.startsWith('#')))
    expect(line).toMatch(/^[a-zA-Z_:][a-zA-Z0-9_:]*(\{[^{}]*\})? [-+0-9.eNaInf]+( \d+)?$/);
  for (const secret of [
    spine.key,
    spine.adminKey,
    'upstream-secret-canary',
    'user-canary',
    'metadata-canary',
    spine.account,
    'test/nowhere',
  ])
    expect(text).not.toContain(secret);
});

test('metrics have a key of their own, which opens nothing else', async () => {
  const status = async (path: string, key: string) => (await get(path, { authorization: `Bearer ${key}` })).status;
  expect(await status('/metrics', METRICS_KEY)).toBe(200);
  expect(await status('/metrics', `${METRICS_KEY}x`)).toBe(401);
  for (const path of ['/admin/v1/accounts', '/api/v1/keys']) expect(await status(path, METRICS_KEY)).toBe(401);
  expect((await get('/metrics')).status).toBe(401);
});

interface Described {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: {
    readonly schemas: Record<string, object>;
    readonly securitySchemes: Record<string, { type: string }>;
  };
  readonly security: Record<string, unknown>[];
}
interface Operation {
  readonly summary?: string;
  readonly parameters?: {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema?: object;
  }[];
  readonly requestBody?: {
    readonly content: Record<
      string,
      { readonly schema: { readonly required?: readonly string[] }; readonly example?: object }
    >;
  };
  readonly responses: Record<string, { readonly description?: string }>;
  readonly security?: object[];
}

describe('/openapi.json', () => {
  let document: Described;
  beforeAll(async () => {
    document = await readOpenApi<Described>(spine.origin);
  });

  test('is OpenAPI 3.1', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: expect.any(String) as string, version: expect.any(String) as string });
  });

  test('describes every endpoint of the contract that there is', () => {
    const paths = Object.keys(document.paths);
    for (const path of [
      'chat/completions',
      'models',
      'session/balance',
      'credits',
      'key',
      'keys',
      'keys/{hash}',
      'generation',
      'providers',
      'providers/{id}',
      'tools',
      'agents',
      'agents/{name}',
      'provider/earnings',
      'provider/services',
      'ping',
    ])
      expect(paths).toContain(`/api/v1/${path}`);
    for (const path of ['/mcp', '/mcp/{name}', '/health/live', '/health/ready', '/metrics', '/.well-known/jwks.json'])
      expect(paths).toContain(path);
  });

  test('has operations that are whole: a summary, described answers, declared path parameters, JSON bodies', () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      expect(path).toMatch(/^\//);
      const named = [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]);
      for (const [method, operation] of Object.entries(methods)) {
        const where = `${method} ${path}`;
        expect(['get', 'post', 'put', 'patch', 'delete', 'head', 'options'], where).toContain(method);
        expect(operation.summary, where).toBeTruthy();
        const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
        expect(declared.map(({ name }) => name).sort(), where).toEqual(named.map(String).sort());
        for (const parameter of declared) expect(parameter.required, where).toBe(true);
        for (const [status, answer] of Object.entries(operation.responses)) {
          expect(status, where).toMatch(/^([1-5]\d\d|default)$/);
          expect(answer.description, `${where} ${status}`).toBeTypeOf('string');
          expect(answer.description, `${where} ${status}`).not.toBe('Default Response');
        }
        if (!operation.requestBody) continue;
        const { content } = operation.requestBody;
        if (content['multipart/form-data'] && !content['application/json']) continue;
        expect(Object.keys(content), where).toContain('application/json');
        // What the page sends when somebody tries it.
        const { schema, example = {} } = content['application/json']!;
        // Some take an empty body, or none.
        if (Object.keys((schema as { properties?: object }).properties ?? {}).length > 0)
          expect(Object.keys(example).length, where).toBeGreaterThan(0);
        expect(Object.keys(example), where).toEqual(expect.arrayContaining([...(schema.required ?? [])]));
      }
    }
  });

  test('refers only to what is there, and uses no keyword that 3.1 lacks', () => {
    const walk = (value: unknown, where: string) => {
      if (typeof value !== 'object' || value === null) return;
      if (Array.isArray(value)) return value.forEach((item, index) => walk(item, `${where}/${index}`));
      const entries = value as Record<string, unknown>;
      const ref = entries['$ref'];
      if (typeof ref === 'string') {
        expect(ref, where).toMatch(/^#\//);
        const found = ref
          .slice(2)
          .split('/')
          .reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], document);
        expect(found, `${where} refers to ${ref}`).toBeDefined();
      }
      if (typeof entries['type'] === 'string' && !where.endsWith('/properties'))
        expect(entries['nullable'], where).toBeUndefined();
      for (const [key, item] of Object.entries(entries)) walk(item, `${where}/${key}`);
    };
    walk(document, '#');
    const schemes = Object.keys(document.components.securitySchemes);
    for (const requirement of document.security)
      for (const name of Object.keys(requirement)) expect(schemes).toContain(name);
  });

  test('says which endpoints need a key, as they do', async () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        // An empty requirement among others: some of what can be asked there needs a key.
        const { security } = operation;
        const isPublic =
          security !== undefined && (security.length === 0 || security.some((one) => Object.keys(one).length === 0));
        const response = await fetch(`${spine.origin}${path.replaceAll(/\{[^}]+\}/g, 'x')}`, {
          method: method.toUpperCase(),
        });
        await response.text();
        expect(response.status === 401, `${method} ${path} answered ${response.status}`).toBe(!isPublic);
      }
    }
  });

  test('the body that it describes is the body that is checked', () => {
    const schema = document.paths['/api/v1/chat/completions']!['post']!.requestBody!.content['application/json']!
      .schema as {
      required: string[];
      not: { not: { anyOf: { required: string[] }[] } };
      properties: Record<string, { maximum?: number }>;
    };
    expect(schema.required).toEqual(['messages']);
    // Behind two negations, because generators of clients would take the alternatives for the whole body.
    expect(schema.not.not.anyOf.map(({ required }) => required)).toEqual([['model'], ['models']]);
    expect(schema.properties['temperature']!.maximum).toBe(2);
    expect(schema.properties['presence_penalty']!.maximum).toBe(2);
  });
});

test('/docs is a page that works without other hosts, and /llms.txt is text', async () => {
  const docs = await fetch(`${spine.origin}/docs`);
  expect(docs.status).toBe(200);
  expect(docs.headers.get('content-type')).toContain('text/html');
  const html = await docs.text();
  expect(html).not.toMatch(/(?:src|href)="https?:\/\/(?!127\.0\.0\.1)/);
  const text = await get('/llms.txt');
  expect(text.headers.get('content-type')).toContain('text/plain');
  expect(await text.text()).toContain('/api/v1/chat/completions');
});

test('the keys of receipts and of agent cards', async () => {
  const { keys } = (await (await get('/.well-known/jwks.json')).json()) as { keys: Record<string, string>[] };
  expect(keys).toHaveLength(2);
  expect(keys[0]).toMatchObject({ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' });
  expect(keys[1]).toMatchObject({ kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig' });
  for (const key of keys) expect(key).not.toHaveProperty('d');
});

test('no answer to a credential is kept by caches, and shared pages name what they vary by', async () => {
  type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>> };
  const { paths } = await readOpenApi<Document>(spine.origin);
  for (const [path, operations] of Object.entries(paths)) {
    if (operations['get'] === undefined) continue;
    const key = path.startsWith('/admin') || path === '/metrics' ? spine.adminKey : spine.key;
    const address = path.replace('{month}', '2026-10').replaceAll(/\{\w+\}/g, 'none');
    for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }] as Record<string, string>[]) {
      const response = await get(address, headers);
      const [cached, vary] = [response.headers.get('cache-control') ?? '', response.headers.get('vary') ?? ''];
      await response.body?.cancel();
      if (!vary.includes('x-api-key')) expect([path, cached]).toEqual([path, expect.stringMatching(/./)]);
      else expect([path, cached]).toEqual([path, expect.stringMatching(/no-store|private|no-cache|^public, max-age/)]);
    }
  }
  const keys = await get('/api/v1/keys', { 'x-api-key': spine.key });
  expect(keys.headers.get('cache-control')).toBe('private, no-store');
  expect(keys.headers.get('vary')).toMatch(/authorization, x-api-key, .*sign-in-with-x.*, cookie, x-tollgate-account$/);
  const models = await get('/api/v1/models');
  expect(models.headers.get('vary')).toContain('x-api-key');
});
