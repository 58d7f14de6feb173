import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { UNHURRIED } from '../../support/spine.ts';
import { wellFormedText } from '../../../src/foundation/wire/json/well-formed.ts';
import { object, value } from '../../foundation/wire/json/json-text.ts';
import { callTool, modernPost, toolToml } from './modern-post.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

const runs = process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 100;

let result = '{}';
const server = ofFile(
  () => startRawMcp(() => result),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({ toml: UNHURRIED + toolToml({ name: 'raw', url: server.url }) }));

/** A member of `_meta` that the gateway spliced in, with its comma, or the whole `_meta` where it made it. */
const GENERATION = {
  made: /,"_meta":\{"tollgate\/generation":\{[^}]*\}\}/,
  spliced: /,?"tollgate\/generation":\{[^}]*\}/,
} as const;
const TOOL =
  /(?:,?"_meta":\{(?:"tollgate\/(?:price|definition)":\{[^}]*\},?)+\}|(?:,?"tollgate\/(?:price|definition)":\{[^}]*\})+)/g;

/** Where a call is charged and a list is a list, whatever else is in there. */
const others = fc
  .array(
    fc.tuple(fc.integer({ min: 0, max: 999 }), value).map(([n, text]) => `"x-${n}" : ${text}`),
    { maxLength: 4 },
  )
  .map((list) => [...new Map(list.map((one) => [one.split('"')[1], one])).values()]);

const block = fc
  .tuple(others, value, object)
  .map(
    ([more, type, annotations]) =>
      `{${['"type" :"text"', '"text":"t"', `"annotations":${annotations}`, `"v":${type}`, ...more].join(' , ')}}`,
  );
const callResult = fc
  .tuple(fc.array(block, { maxLength: 3 }), others, object, fc.boolean())
  .map(([blocks, more, meta, hasMeta]) => ({
    made: hasMeta ? ('spliced' as const) : ('made' as const),
    text: `{ "resultType":"complete",${['"content": [' + blocks.join(',\n') + ']', ...more, ...(hasMeta ? [`"_meta":${meta}`] : [])].join(',')}\n}`,
  }));

test('a result with unknown members everywhere comes back as it was written', async () => {
  await fc.assert(
    fc.asyncProperty(callResult, async ({ text, made }) => {
      result = text;
      const reply = await callTool(spine, 'raw', 'any', { anything: 1 });
      expect(reply.status, reply.text).toBe(200);
      const [, given = ''] = /"result":([^]*)\}$/.exec(reply.text) ?? [];
      expect(given.replace(GENERATION[made], '')).toBe(text);
    }),
    { numRuns: runs },
  );
  expect(await spine.faults()).toEqual([]);
});

test('a request goes out as it was written', async () => {
  result = '{"resultType":"complete","content":[]}';
  await fc.assert(
    fc.asyncProperty(object, others, async (args, more) => {
      const params = [
        `"name":"any"`,
        `"arguments" : ${args}`,
        ...more,
        '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}',
      ];
      const body = `{ "params":{${params.join(', ')}},"method":"tools/call","id":1.0,"jsonrpc":"2.0" }`;
      const response = await fetch(`${spine.origin}/mcp/raw`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': 'any',
          authorization: `Bearer ${spine.key}`,
        },
        body,
      });
      const text = await response.text();
      expect(text).toMatch(/^\{"jsonrpc":"2.0","id":1.0,"result"/);
      // Halves of characters are no text: they are repaired.
      expect(server.asked.at(-1)!.text).toBe(wellFormedText(Buffer.from(body)));
    }),
    { numRuns: runs },
  );
});

test('a list of tools comes back as it was written, but for what each costs and how it is pinned', async () => {
  const tool = fc
    .tuple(fc.uuid(), others, object, object)
    .map(
      ([name, more, schema, annotations]) =>
        `{"name":"t-${name}",${[`"inputSchema": {"type":"object", "x-schema":${schema}}`, `"annotations":${annotations}`, ...more].join(',')} }`,
    );
  await fc.assert(
    fc.asyncProperty(fc.array(tool, { maxLength: 4 }), others, async (tools, more) => {
      result = `{"resultType":"complete",${[`"tools": [${tools.join(' ,')}]`, '"ttlMs":0', '"cacheScope":"private"', ...more].join(',')}}`;
      const reply = await modernPost(spine, '/mcp/raw', 'tools/list');
      expect(reply.status, reply.text).toBe(200);
      const [, given = ''] = /"result":([^]*)\}$/.exec(reply.text) ?? [];
      expect(given.replace(TOOL, '')).toBe(result);
    }),
    { numRuns: runs },
  );
});
