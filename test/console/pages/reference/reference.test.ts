import { gunzipSync } from 'node:zlib';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOwnOrigin } from '#security';
import { referenceRoutes } from '#pages';
import { EXAMPLE_MODEL } from '#http';

interface Document {
  readonly paths: Readonly<Record<string, unknown>>;
  readonly tags: readonly { readonly name: string }[];
  readonly components: {
    readonly schemas: {
      readonly ErrorDetail: { readonly required: readonly string[] };
    };
  };
}

let app: FastifyInstance;
let url: string;
beforeAll(async () => {
  app = Fastify({ forceCloseConnections: true });
  await referenceRoutes(app, {
    version: '1.2.3',
    payable: false,
    exampleModel: () => null,
    publicUrl: null,
    ownOrigin: createOwnOrigin({ publicUrl: null }),
  });
  const body = {
    type: 'object',
    required: ['model'],
    properties: { model: { type: 'string', description: 'Which one.' } },
  };
  await app.register(
    async (child) => {
      child.post(
        '/chat/completions',
        { schema: { tags: ['Chat'], summary: 'Create a chat completion', body } },
        async () => ({}),
      );
      const params = { type: 'object', properties: { '*': { type: 'string' } } };
      child.get('/models/*', { schema: { tags: ['Models'], summary: 'Show a model', params } }, async () => ({}));
      child.get('/models', { schema: { tags: ['Models'], security: [], summary: 'List models' } }, async () => ({}));
    },
    { prefix: '/api/v1' },
  );
  url = await app.listen({ port: 0, host: '127.0.0.1' });
});
afterAll(() => app.close());

const get = (path: string) => fetch(url + path);

/** The document of a server whose only routes are `POST /chat/completions` and `GET /agents`. */
async function documentOf(options: {
  readonly payable: boolean;
  readonly exampleModel: () => string | null;
}): Promise<string> {
  const own = Fastify();
  await referenceRoutes(own, { version: '1', publicUrl: null, ownOrigin: () => null, ...options });
  const body = { type: 'object', properties: { model: { type: 'string' } }, examples: [{ model: EXAMPLE_MODEL }] };
  own.post('/chat/completions', { schema: { tags: ['Chat'], summary: 'Chat', body } }, async () => ({}));
  own.get('/agents', { schema: { tags: ['Models'], summary: 'List agents' } }, async () => ({}));
  return (await own.inject('/openapi.json')).body;
}

interface Operations {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly security?: readonly object[]; readonly operationId: string }>>>
  >;
}

describe('the reference', () => {
  it('says where a payment is enough, without a credential', async () => {
    const { paths } = JSON.parse(await documentOf({ payable: true, exampleModel: () => null })) as Operations;
    expect(paths['/chat/completions']!['post']!.security).toEqual([{}, { bearer: [] }, { apiKey: [] }, { wallet: [] }]);
    expect(paths['/agents']!['get']!.security).toBeUndefined();
    const without = JSON.parse(await documentOf({ payable: false, exampleModel: () => null })) as Operations;
    expect(without.paths['/chat/completions']!['post']!.security).toBeUndefined();
  });

  it('has examples that call a model of this gateway', async () => {
    const document = await documentOf({ payable: false, exampleModel: () => 'own/"model"$&' });
    expect(document).not.toContain(EXAMPLE_MODEL);
    expect(document).toContain(JSON.stringify('own/"model"$&'));
    expect(await documentOf({ payable: false, exampleModel: () => null })).toContain(EXAMPLE_MODEL);
  });

  it('is sent packed to who takes gzip, and not again to who has it', async () => {
    const whole = await get('/openapi.json');
    const etag = whole.headers.get('etag')!;
    const packed = await app.inject({ url: '/openapi.json', headers: { 'accept-encoding': 'gzip' } });
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(packed.rawPayload).toString()).toBe(await whole.text());
    const again = await app.inject({ url: '/openapi.json', headers: { 'if-none-match': etag } });
    expect([again.statusCode, again.body]).toEqual([304, '']);
  });

  it('answers at the address with a slash, as the page before did', async () => {
    const answer = await app.inject('/docs/');
    expect([answer.statusCode, answer.headers.location]).toEqual([302, '/docs']);
  });

  it('has a home page with the address that was asked, and every kind of client', async () => {
    const page = await (await get('/')).text();
    expect(page).toContain(`OPENAI_BASE_URL=${url}/api/v1`);
    expect(page).toContain(`${url}/a2a/`);
    expect(page).toContain('href="/api/v1/agents"');
    expect(page).not.toContain('this address');
  });

  it('is OpenAPI 3.1 from the schemas that validate, with every way to say who calls', async () => {
    const response = await get('/openapi.json');
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const document = (await response.json()) as Document;
    expect(document).toMatchObject({
      openapi: '3.1.0',
      info: { title: 'tollgate', version: '1.2.3' },
      security: [{ bearer: [] }, { apiKey: [] }, { wallet: [] }],
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer' },
          apiKey: { in: 'header', name: 'x-api-key' },
          wallet: { type: 'apiKey', in: 'header', name: 'SIGN-IN-WITH-X' },
        },
        responses: {
          OtherErrorOfCall: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
        },
      },
      paths: {
        '/api/v1/chat/completions': {
          post: {
            summary: 'Create a chat completion',
            requestBody: {
              content: {
                'application/json': {
                  schema: { required: ['model'], properties: { model: { description: 'Which one.' } } },
                },
              },
            },
            responses: {
              default: { $ref: '#/components/responses/OtherErrorOfCall' },
            },
          },
        },
        '/api/v1/models': { get: { security: [] } },
      },
    });
    expect(Object.keys(document.paths)).toEqual([
      '/api/v1/chat/completions',
      '/api/v1/models/{name}',
      '/api/v1/models',
    ]);
    expect(document.components.schemas.ErrorDetail.required).toEqual(['message', 'type', 'code']);
    expect(document.tags.map(({ name }) => name)).toEqual(['Chat', 'Models']);
  });

  it('is plain text for language models', async () => {
    const text = await (await get('/llms.txt')).text();
    expect(text.startsWith('# tollgate\n')).toBe(true);
    expect(text).toContain('## Chat\n\n- POST /api/v1/chat/completions: Create a chat completion\n');
    expect(text).toContain('- GET /api/v1/models: List models\n');
    for (const way of ['Authorization: Bearer', 'x-api-key', 'SIGN-IN-WITH-X', 'tollgate.mjs provide'])
      expect(text).toContain(way);
  });

  it.each(['/'])('is a page at %s that runs no inline script and takes nothing from elsewhere', async (path) => {
    const response = await get(path);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = response.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    const page = await response.text();
    expect(page).toContain('<title>tollgate');
    expect(page).not.toMatch(/<script(?![^>]*\ssrc=)/);
    expect(page).not.toMatch(/\son\w+=|javascript:/);
    for (const [, address] of page.matchAll(/<(?:script|link|a)\s[^>]*(?:src|href)="([^"]+)"/g)) {
      expect(address).toMatch(/^(?:\/(?!\/)|\.\/)/);
      if (/\.(?:js|css|svg)$/.test(address!))
        expect((await fetch(new URL(address!, response.url))).status, address).toBe(200);
    }
  });
});
