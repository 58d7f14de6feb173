import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// What a request has wrong is said in plain words at every endpoint that has a schema, and names the field.

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({ toml: UNHURRIED });
});
afterAll(() => spine.stop());

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
}
interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

/** How validators of JSON Schema talk. */
const RAW =
  /must NOT|must (?:be|match) (?:string|number|integer|boolean|array|object|null|format|pattern)\b|,null|additional propert|(?:body|querystring|params)\//;
/** Values, one of which is wrong for any field. */
const WRONG = [{ odd: 1 }, 7.5, -1, '', 'x'.repeat(300), [], true];

test('of a body', async () => {
  const { paths } = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as { paths: Record<string, Record<string, Operation>> };
  const heard = new Map<string, string>();
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { requestBody }] of Object.entries(operations)) {
      const schema = requestBody?.content['application/json']?.schema;
      if (!schema?.properties || /^\/(?:mcp|a2a)|\/rpc$/.test(path)) continue;
      const key = path.startsWith('/admin/') ? spine.adminKey : spine.key;
      const send = async (body: unknown) => {
        const response = await fetch(spine.origin + path.replaceAll(/\{\w+\}/g, 'tollgate:local:tester'), {
          method: method.toUpperCase(),
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
        const answer = (await response.json()) as {
          readonly error?: { readonly message: string; readonly type: string; readonly param: string | null };
        };
        expect(response.status, `${method} ${path} ${JSON.stringify(body).slice(0, 80)}`).toBeLessThan(500);
        if (answer.error) expect(answer.error.message, `${method} ${path} ${JSON.stringify(body).slice(0, 80)}`).not.toMatch(RAW);
        return answer.error;
      };
      expect((await send([]))?.type, `${method} ${path} of a list`).toBe('invalid_request');
      for (const name of Object.keys(schema.properties)) {
        let named = false;
        for (const value of WRONG) {
          const error = await send({ [name]: value });
          if (error?.param?.startsWith(name) && error.message.includes(name)) named = true;
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
  const { paths } = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as { paths: Record<string, Record<string, Operation>> };
  let refused = 0;
  for (const [path, { get }] of Object.entries(paths)) {
    for (const { name, in: place, schema } of get?.parameters ?? []) {
      if (place !== 'query' || !['integer', 'boolean', 'number'].includes(String(schema.type))) continue;
      const key = path.startsWith('/admin/') ? spine.adminKey : spine.key;
      const address = `${spine.origin}${path.replaceAll(/\{\w+\}/g, 'x')}?${name}=nonsense`;
      const response = await fetch(address, { headers: { authorization: `Bearer ${key}` } });
      if (response.status !== 400) continue;
      const { error } = (await response.json()) as { error: { message: string; param: string } };
      expect(error.param).toBe(name);
      expect(error.message).toMatch(new RegExp(`^${name} must be (?:a whole number|a number|true or false)$`));
      refused++;
    }
  }
  expect(refused).toBeGreaterThan(3);
});

test.each([
  ['/keys', { limit: '5' }, 'limit must be a number or null'],
  ['/keys', { name: '' }, 'name must not be empty'],
  ['/keys', { allowed_services: 'all' }, 'allowed_services must be a list or null'],
  ['/keys', { allowed_services: [1] }, 'allowed_services.0 must be a text'],
  ['/keys', { limits: 5 }, 'limits is not known here; did you mean limit? Known are name, label, limit, limit_reset, expires_at, allowed_services'],
  ['/keys', [], 'The body must be an object or null'],
  ['/topup', { amount_usd: true }, 'amount_usd must be a number or a text'],
])('%s of %j: %s', async (path, body, message) => {
  expect(await (await spine.post(path, body)).json()).toMatchObject({ error: { message, code: 400 } });
});
