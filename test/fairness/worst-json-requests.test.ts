import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readOpenApi } from '../support/open-api.ts';
import { stallsAt } from '../support/loop-stalls.ts';
import { modelBlock, UNHURRIED } from '../support/spine.ts';
import { within } from './support/worst/shapes.ts';
import { shortTurn, startWorld, type World } from './support/worst/world.ts';

/* The worst JSON in the body of every route of /openapi.json, in each of its fields. */

/** The defaults of `limits`; a route that takes less refuses the body by its length. */
const REQUEST = { label: '', bytesMax: 8_000_000, jsonDepthMax: 64, jsonKeysMax: 10_000, jsonElementsMax: 200_000 };
const LARGE = within(REQUEST);
/** Routes that take 1 MiB are asked with that as well. */
const SMALL = within({ ...REQUEST, bytesMax: 1_000_000 });

interface Operation {
  readonly requestBody?: {
    readonly content?: { readonly 'application/json'?: { readonly schema?: { readonly properties?: object } } };
  };
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

let world: World;
beforeAll(async () => {
  world = await startWorld(
    (url) =>
      [undefined, 'messages', 'responses', 'gemini'].reduce<string>(
        (toml, wire) =>
          toml +
          modelBlock({
            name: `m/${wire ?? 'text'}`,
            provider: `Of ${wire ?? 'text'}`,
            url: `${url}/v1`,
            ...(wire === undefined ? {} : { params: `wires = ["${wire}"]` }),
          }),
        UNHURRIED,
      ),
    () => ({ body: '{}' }),
  );
});
afterAll(async () => world?.stop());

/** What a route may need before it looks at the field. */
const USUAL = {
  model: 'm/text',
  max_tokens: 5,
  messages: [{ role: 'user', content: 'x' }],
  jsonrpc: '2.0',
  id: 1,
  method: 'chat/completions',
  params: {},
  name: 'x',
};

const send = async (method: string, path: string, body: string): Promise<number> => {
  const response = await fetch(world.gateway.baseUrl + path, {
    method,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${path.startsWith('/admin') ? world.gateway.adminKey : world.key}`,
    },
    body,
  }).catch(() => null);
  await response?.text().catch(() => '');
  return response?.status ?? 0;
};

/** The longest turns of up to three requests, in milliseconds: until one is short. */
async function turnsOf(method: string, path: string, body: string) {
  let status = 0;
  const longest = await shortTurn(async () => {
    await stallsAt(world.socketPath);
    status = await send(method, path, body);
    return (await stallsAt(world.socketPath)).workMs;
  });
  return { ...longest, status };
}

it('holds up nobody', { timeout: 600_000 }, async () => {
  const { paths } = await readOpenApi<Document>(world.gateway.baseUrl);
  const madeOf = (shapes: typeof SMALL) => Object.entries(shapes).map(([name, make]) => [name, make()] as const);
  const [small, large] = [madeOf(SMALL), madeOf(LARGE)];
  const short = large.find(([shape]) => shape === 'as many short texts as are read')!;
  const slow: string[] = [];
  let routes = 0;
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { requestBody }] of Object.entries(operations)) {
      const schema = requestBody?.content?.['application/json']?.schema;
      if (schema === undefined) continue;
      routes++;
      const fields = Object.keys(schema.properties ?? {}).concat('junk');
      const at = path.replaceAll(/\{[^}]*\}/g, 'x');
      // Each field gets some of the shapes; all shapes are in some field. Each field of an envelope gets the shape that
      // takes longest where a text is read in one piece.
      const shapes = [large[0]!, small[routes % small.length]!].map(
        (one, index) => [fields[(index + routes) % fields.length]!, one] as const,
      );
      if (fields.includes('jsonrpc')) for (const field of fields) shapes.push([field, short]);
      for (const [field, [shape, junk]] of shapes) {
        const others = Object.entries(USUAL).filter(([name]) => name !== field && fields.includes(name));
        const body = `{${[...others.map(([name, value]) => `"${name}":${JSON.stringify(value)}`), `"${field}":${junk}`].join()}}`;
        const { isShort, turns, status } = await turnsOf(method.toUpperCase(), at, body);
        if (!isShort) slow.push(`${method} ${path} ${field} with ${shape}: ${status}, ${turns.join(' ')} ms`);
      }
    }
  expect(routes).toBeGreaterThan(40);
  expect(slow).toEqual([]);
});

/** Requests whose bytes go on to a provider that speaks the same API, and where each has any JSON. */
const NATIVE: Readonly<Record<string, readonly [path: string, body: (junk: string) => string]>> = {
  messages: [
    '/api/v1/messages',
    (junk) =>
      `{"model":"m/messages","max_tokens":5,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"t","input_schema":{"type":"object","default":${junk}}}]}`,
  ],
  responses: [
    '/api/v1/responses',
    (junk) =>
      `{"model":"m/responses","input":"x","tools":[{"type":"function","name":"t","parameters":{"type":"object","default":${junk}}}]}`,
  ],
  gemini: [
    '/api/v1beta/models/m/gemini:generateContent',
    (junk) =>
      `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"t","parameters":{"type":"OBJECT","default":${junk}}}]}]}`,
  ],
  chat: [
    '/api/v1/chat/completions',
    (junk) =>
      `{"model":"m/text","max_tokens":5,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"t","parameters":{"type":"object","default":${junk}}}}]}`,
  ],
};

describe.each(Object.entries(NATIVE))('a request of %s that passes', (_api, [path, body]) => {
  it.each(Object.entries(within({ ...REQUEST, bytesMax: 7_990_000 })))('with %s', async (shape, make) => {
    const text = body(make());
    const { isShort, turns, status } = await turnsOf('POST', path, text);
    if (process.env['WORST_SHOWN'] === '1') console.log(`@@ ${path} | ${shape} | ${turns.join(' ')} | ${status}`);
    expect(isShort, turns.join(', ')).toBe(true);
  });
});
