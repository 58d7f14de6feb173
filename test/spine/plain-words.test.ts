import { describe, expect, test } from 'vitest';
import { SMALLEST_PNG } from '../peers/peer-provider.ts';
import { UNHURRIED } from '../support/spine.ts';
import { readOpenApi } from '../support/open-api.ts';
import { spineOfFile } from '../support/of-file.ts';

// What a request has wrong is said in plain words at every endpoint that has a schema, and names the field.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
}
interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

interface AnsweredError {
  readonly message: string;
  readonly type?: string;
  readonly param?: string | null;
  /** Google's form of errors has the names here. */
  readonly details?: readonly { readonly reason?: string; readonly metadata?: { readonly param: string } }[];
}

const namesIn = ({ type, param, details }: AnsweredError) => ({
  type: type ?? details?.[0]?.reason?.toLowerCase(),
  param: param ?? details?.[0]?.metadata?.param,
});

/** How validators of JSON Schema talk. */
const RAW =
  /must NOT|must (?:be|match) (?:string|number|integer|boolean|array|object|null|format|pattern)\b|,null|additional propert|(?:body|querystring|params)\//;
/** Members without which the others of a body are not looked at. */
const NEEDED: Readonly<Record<string, object>> = {
  '/api/v1/image/generate': { model: 'demo/none', prompt: 'x' },
  '/api/v1/images/generations': { model: 'demo/none', prompt: 'x' },
  '/api/v1/image/edit': { model: 'demo/none', prompt: 'x', images: [SMALLEST_PNG] },
  '/api/v1/image/generate/quote': { model: 'demo/none' },
  '/api/v1/image/edit/quote': { model: 'demo/none' },
  '/api/v1/images/edits': { model: 'demo/none', prompt: 'x', images: [SMALLEST_PNG] },
  '/api/v1/images': { model: 'demo/none', prompt: 'x' },
  '/api/v1/videos': { model: 'demo/none', prompt: 'x' },
};

/**
 * Values, one of which is wrong for any field. By day each field gets two that most refuse, and one of the others,
 * which goes round.
 */
const [WRONG, ROUND] = [
  [{ odd: 1 }, -1],
  [7.5, '', 'x'.repeat(300), [], true],
];
const DEEP = process.env['TOLLGATE_DEEP'] === '1';

test('of a body', async () => {
  const { paths } = await readOpenApi<{
    paths: Record<string, Record<string, Operation>>;
  }>(spine.origin);
  const heard = new Map<string, string>();
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { requestBody }] of Object.entries(operations)) {
      const schema = requestBody?.content['application/json']?.schema;
      if (!schema?.properties || /^\/(?:mcp|a2a)|\/rpc$/.test(path)) continue;
      const key = path.startsWith('/admin/') ? spine.adminKey : spine.key;
      const isCohere = path.endsWith('/v2/rerank');
      const send = async (body: unknown) => {
        const response = await fetch(spine.origin + path.replaceAll(/\{\w+\}/g, 'tollgate:local:tester'), {
          method: method.toUpperCase(),
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
        const said = (await response.json()) as { readonly error?: AnsweredError } & Partial<AnsweredError>;
        // Cohere's form has the message at the top, and no type.
        const answer = isCohere && said.message !== undefined ? { error: said as AnsweredError } : said;
        expect(response.status, `${method} ${path} ${JSON.stringify(body).slice(0, 80)}`).toBeLessThan(500);
        if (answer.error)
          expect(answer.error.message, `${method} ${path} ${JSON.stringify(body).slice(0, 80)}`).not.toMatch(RAW);
        return answer.error && { ...answer.error, ...namesIn(answer.error) };
      };
      const refused = await send([]);
      // A gateway without chains says so whatever is sent.
      if (refused?.message.includes('no payments over chains')) continue;
      // Anthropic's wire has a name of its own for it.
      if (isCohere) expect(refused?.message, path).toMatch(/^The body must be /);
      else expect(refused?.type, `${method} ${path} of a list`).toMatch(/^invalid_request(?:_error)?$/);
      for (const [at, name] of Object.keys(schema.properties).entries()) {
        let named = false;
        for (const value of [...WRONG, ...(DEEP ? ROUND : [ROUND[(heard.size + at) % ROUND.length]])]) {
          const error = await send({ ...NEEDED[path], [name]: value });
          if ((isCohere || error?.param?.startsWith(name)) && error?.message.includes(name)) named = true;
        }
        heard.set(`${method} ${path} ${name}`, named ? 'named' : 'never named');
      }
    }
  }
  expect(heard.size).toBeGreaterThan(30);
  // Fields of a body that needs others first are not looked at; whatever is looked at is named.
  expect([...heard.values()].filter((one) => one === 'named').length).toBeGreaterThan(heard.size / 2);
});

test('of a query', async () => {
  const { paths } = await readOpenApi<{
    paths: Record<string, Record<string, Operation>>;
  }>(spine.origin);
  let refused = 0;
  for (const [path, { get }] of Object.entries(paths)) {
    for (const { name, in: place, schema } of get?.parameters ?? []) {
      if (place !== 'query' || !['integer', 'boolean', 'number'].includes(String(schema.type))) continue;
      const key = path.startsWith('/admin/') ? spine.adminKey : spine.key;
      const address = `${spine.origin}${path.replaceAll(/\{\w+\}/g, 'x')}?${name}=nonsense`;
      const response = await fetch(address, { headers: { authorization: `Bearer ${key}` } });
      if (response.status !== 400) continue;
      const { error } = (await response.json()) as { error: AnsweredError };
      expect(namesIn(error).param).toBe(name);
      expect(error.message).toMatch(
        new RegExp(`^${name} must be (?:a whole number|a number|true or false), not "nonsense"$`),
      );
      refused++;
    }
  }
  expect(refused).toBeGreaterThan(3);
});

test.each([
  ['/keys', { limit: '5' }, 'limit must be a number or null, not "5"'],
  ['/keys', { name: '' }, 'name must not be empty'],
  ['/keys', { allowed_services: 'all' }, 'allowed_services must be an array or null, not "all"'],
  ['/keys', { allowed_services: [1] }, 'allowed_services[0] must be a string, not 1'],
  ['/keys', { allowed_services: [] }, 'allowed_services must not be empty'],
  [
    '/keys',
    { limits: 5 },
    'limits is not known here; did you mean limit? Known are name, label, limit, limit_reset, limit_soft, limit_notify, requests_per_minute, tokens_per_minute, expires_at, continue, allowed_services, ask_above, tags',
  ],
  ['/keys', { limit: 1e12 }, 'limit 1000000000000 is larger than 1000000000 USD, the most that an amount can be'],
  ['/keys', [], 'The body must be a JSON object ({} makes a key without limits), not an empty array'],
  [
    '/chat/completions',
    { model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 1e30 },
    'max_tokens must be an integer from 1 to 9007199254740991, not 1e+30',
  ],
  [
    '/chat/completions',
    { model: 'm', messages: [] },
    'messages must be an array of 1 to 2048 messages, not an empty array',
  ],
])('%s of %j: %s', async (path, body, message) => {
  expect(await (await spine.post(path, body)).json()).toMatchObject({ error: { message, code: 400 } });
});

test.each(['1e999', '-1e999', '9007199254740993'])('of a number that no double holds: %s', async (number) => {
  const body = `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":${number}}`;
  const { error } = (await (await spine.post('/chat/completions', body)).json()) as { error: { message: string } };
  const size = number.startsWith('-') ? 'small' : 'large';
  expect(error.message).toBe(
    `max_tokens must be an integer from 1 to 9007199254740991, not ${number}, a number that is too ${size}`,
  );
});

test('of a model that is misspelt', async () => {
  const response = await spine.post('/chat/completions', {
    model: 'test/modle',
    messages: [{ role: 'user', content: 'x' }],
  });
  expect([response.status, await response.json()]).toMatchObject([
    404,
    {
      error: { type: 'invalid_model', message: 'Model not found: test/modle. The nearest: test/model', param: 'model' },
    },
  ]);
});

test('of an address', async () => {
  const say = async (path: string) => {
    const response = await fetch(spine.origin + path, { headers: { authorization: `Bearer ${spine.key}` } });
    return ((await response.json()) as { error: { message: string; param: string | null } }).error;
  };
  expect(await say('/api/v1/models?type=chat&type=image')).toMatchObject({
    message: 'type must be given once',
    param: 'type',
  });
  expect(await say('/api/v1/models?type=x')).toMatchObject({
    message: 'type must be one of chat, image, video, all, not "x"',
    param: 'type',
  });
  expect(await say('/api/v1/%ff')).toMatchObject({
    message: 'The address is not valid: it has a percent sign that encodes no character',
  });
  expect(await say('/api/v1/agents/no/such')).toMatchObject({
    message: 'Agent not found: no/such. GET /api/v1/agents lists all agents',
    param: 'agent',
  });
  expect(await say('/api/v1/tools?service=no/such')).toMatchObject({ param: 'service' });
});

const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'x' } };
const FORM = 'send {"jsonrpc": "2.0", "id": …, "method": "…", "params": {…}}';

describe.each(['/mcp/no/such', '/a2a/no/such', '/api/v1/rpc'])('of a message to %s', (path) => {
  const send = async (body: string | Uint8Array<ArrayBuffer>, method = 'POST') => {
    const headers = { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' };
    const response = await fetch(spine.origin + path, { method, headers, ...(method === 'GET' ? {} : { body }) });
    return {
      status: response.status,
      allow: response.headers.get('allow'),
      answer: (await response.json()) as Record<string, unknown>,
    };
  };

  test.each([
    ['no JSON', '{"jsonrpc":', null, -32_700, 'The body is not valid JSON: it ends too early, at position 11'],
    ['nothing', ' ', null, -32_700, `The body is empty: ${FORM}`],
    ['a text', '"x"', null, -32_600, `A request is an object: ${FORM}`],
    ['no version', JSON.stringify({ ...CALL, jsonrpc: undefined }), 7, -32_600, `jsonrpc must be "2.0": ${FORM}`],
    ['no method', JSON.stringify({ ...CALL, method: undefined }), 7, -32_600, `method must be a string: ${FORM}`],
    ['a number as method', JSON.stringify({ ...CALL, method: 5 }), 7, -32_600, `method must be a string: ${FORM}`],
    [
      'a response that is wrong',
      '{"jsonrpc":"2.0","id":7,"result":1,"error":2}',
      null,
      -32_600,
      'A response has either result or error, not both',
    ],
    ['an object as id', JSON.stringify({ ...CALL, id: {} }), null, -32_600, 'id must be a string or a number'],
    [
      'a key twice',
      '{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}',
      null,
      -32_600,
      'The request is ambiguous: duplicate key "id" in an object (at position 24)',
    ],
  ])('%s', async (_name, body, id, code, message) => {
    expect((await send(body)).answer).toEqual({
      jsonrpc: '2.0',
      id,
      error: expect.objectContaining({ code, message }) as unknown,
    });
  });

  test('parameters in an array', async () => {
    const { answer } = await send(JSON.stringify({ ...CALL, params: [] }));
    expect(answer).toMatchObject({
      id: 7,
      error: { message: 'params must be an object: parameters are given by name' },
    });
  });

  test('bytes that are no text', async () => {
    const { answer } = await send(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]));
    expect(answer).toMatchObject({ id: null, error: { code: -32_700, message: 'The body is not valid UTF-8' } });
  });

  test('a method that is nearly one', async () => {
    const method = { '/mcp/no/such': 'tools/cal', '/a2a/no/such': 'message/sen', '/api/v1/rpc': 'chat/completion' }[
      path
    ]!;
    const { answer } = await send(JSON.stringify({ ...CALL, method }));
    const { code, message } = answer['error'] as { code: number; message: string };
    expect(code).toBe(-32_601);
    expect(message).toMatch(
      new RegExp(
        `^There is no method "${method}".*The nearest: ${{ '/mcp/no/such': 'tools/call', '/a2a/no/such': 'message/send', '/api/v1/rpc': 'chat/completions' }[path]!}`,
      ),
    );
  });

  test('another HTTP method, in the shape of the wire', async () => {
    const { status, allow, answer } = await send('{}', 'PUT');
    expect([status, allow?.includes('POST')]).toEqual([405, true]);
    const { message } = answer['error'] as { message: string };
    expect(message).toMatch(/ does not take PUT\. It takes .*POST$/);
    if (path.startsWith('/a2a'))
      expect(answer).toMatchObject({ error: { code: 405, details: [{ reason: 'INVALID_PARAMS' }] } });
    else expect(answer).toMatchObject({ jsonrpc: '2.0', id: null });
  });
});

test('an address of agents that is only posted to says so', async () => {
  for (const path of ['/a2a', '/api/v1/a2a']) {
    const response = await fetch(spine.origin + path, { headers: { authorization: `Bearer ${spine.key}` } });
    expect([path, response.status, response.headers.get('allow')]).toEqual([path, 405, 'POST']);
    expect(await response.json()).toMatchObject({ message: 'This address does not take GET. It takes POST' });
  }
});
