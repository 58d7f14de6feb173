import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, onTestFinished, test } from 'vitest';
import { readableList } from '../../../src/mcp/shapes/lists.ts';
import { startBridge } from './bridge-world.ts';
import { startLegacyServer } from './legacy-server.ts';
import { startRawServer, toolCall } from './raw-server.ts';

const tool = (name: string, outputSchema: string) =>
  `{"name":"${name}", "n":1.0,"inputSchema":{"type":"object"},"outputSchema":${outputSchema},"z":[1e2]}`;
const wrapped = (schema: string, dialect = '') =>
  `{${dialect}"type":"object","properties":{"result":${schema}},"required":["result"]}`;
const bare = (name: string) => `{"name":"${name}", "n":1.0,"inputSchema":{"type":"object"},"z":[1e2]}`;

/** As the server lists a tool, and as a legacy client sees it. */
const TOOLS: readonly (readonly [string, string])[] = [
  [tool('object', '{"type":"object","x":1.0}'), tool('object', '{"type":"object","x":1.0}')],
  [
    tool('list', '{"type":"array","items":{"type":"string"},"x":1.0}'),
    tool('list', wrapped('{"type":"array","items":{"type":"string"},"x":1.0}')),
  ],
  [
    tool('numbers', '{"type":"array","items":{"type":"number"}}'),
    tool('numbers', wrapped('{"type":"array","items":{"type":"number"}}')),
  ],
  [
    tool('dialect', '{"$schema":"urn:d","type":"string"}'),
    tool('dialect', wrapped('{"$schema":"urn:d","type":"string"}', '"$schema":"urn:d",')),
  ],
  [tool('both', '{"type":["string","null"]}'), tool('both', wrapped('{"type":["string","null"]}'))],
  [tool('maybe', '{"type":["object","null"]}'), bare('maybe')],
  [tool('any', '{"anyOf":[{"type":"object"},{"type":"string"}]}'), bare('any')],
  [tool('recursive', '{"type":"array","items":{"$ref":"#"}}'), bare('recursive')],
  [tool('true', 'true'), bare('true')],
];

const listed = (index: 0 | 1) => `{"tools":[ ${TOOLS.map((pair) => pair[index]).join(' ,')} ]}`;

/** The list as the adapter of a call gives it to a client with a session. */
function readAsListed(): string {
  const read = readableList('tools/list', 'legacy', listed(0));
  if ('fault' in read) throw new Error(read.fault);
  return read.text;
}

test('outputs that are no objects are listed as the objects that they come in, and nothing else changes', () => {
  expect(readableList('tools/list', 'legacy', listed(0))).toEqual({ text: listed(1) });
});

test.each([
  ['[1.0, 2]', '{"result":[1.0, 2]}'],
  ['null', '{"result":null}'],
  ['"\\u0061"', '{"result":"\\u0061"}'],
  ['{"a":1.0}', '{"a":1.0}'],
])('structuredContent %s comes as %s', async (content, expected) => {
  const server = await startRawServer((_got, reply) =>
    reply.result(`{"content":[],"structuredContent":${content}, "resultType":"complete"}`),
  );
  const world = await startBridge(server.url);
  expect((await world.ask(world.session(), toolCall('1'))).text).toBe(
    `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":${expected}}}`,
  );
  expect(await world.faults()).toEqual([]);
});

test('a client of the older library takes the list, and checks the results by it', async () => {
  const server = await startRawServer(({ method }, reply) =>
    reply.result(method === 'tools/list' ? readAsListed() : '{"content":[],"structuredContent":["a"]}'),
  );
  const world = await startBridge(server.url);
  const front = await startLegacyServer(world);
  const client = new Client({ name: 'c', version: '1' });
  onTestFinished(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(front.url)));
  expect((await client.listTools()).tools).toHaveLength(TOOLS.length);
  expect(await client.callTool({ name: 'list' })).toMatchObject({ structuredContent: { result: ['a'] } });
  await expect(client.callTool({ name: 'numbers' })).rejects.toThrow('does not match');
  expect(await world.faults()).toEqual([]);
});
