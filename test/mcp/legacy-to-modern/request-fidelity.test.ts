import { expect, test } from 'vitest';
import { startBridge } from './bridge-world.ts';
import { startRawServer, toolCall } from './raw-server.ts';

const OK = '{"resultType":"complete","content":[]}';
const CLIENT = {
  capabilities: {
    roots: { listChanged: true },
    elicitation: {},
    tasks: { list: {} },
    extensions: { 'a/b': {}, 'io.modelcontextprotocol/tasks': {} },
  },
  clientInfo: { name: 'c', version: '2', extra: 1 },
};

const envelope = (capabilities: string, more = '') =>
  `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":${capabilities},` +
  `"io.modelcontextprotocol/clientInfo":{"name":"c","version":"2","extra":1}${more}`;

async function forward(
  text: string,
  prepare: (world: Awaited<ReturnType<typeof startBridge>>) => void = () => {},
  events = true,
) {
  const server = await startRawServer((_got, reply) => reply.result(OK));
  const world = await startBridge(server.url);
  prepare(world);
  const session = world.session(CLIENT);
  await world.ask(session, text, { events });
  expect(await world.faults()).toEqual([]);
  return server.got[0]!;
}

test('the server gets the bytes of the request, with an envelope, and an id that no other request has', async () => {
  const got = await forward(
    '{ "method":"tools/call","id": 12345678901234567890 , "params":{"arguments":{"b":1.0,"a":[12345678901234567890,1e2,"\\u0061"]}, "name":"t", "unknown":{"z":1,"y":2}, "_meta":{"progressToken":7.0,"x":null}},"jsonrpc":"2.0","more":[ ]}',
  );
  expect(got.id).toMatch(/^gen-.*\.1$/);
  expect(got.text).toBe(
    `{ "method":"tools/call","id": "${got.id}" , "params":{"arguments":{"b":1.0,"a":[12345678901234567890,1e2,"\\u0061"]}, "name":"t", "unknown":{"z":1,"y":2}, "_meta":{"progressToken":7.0,"x":null,` +
      envelope('{"roots":{"listChanged":true},"elicitation":{"form":{}},"extensions":{"a/b":{}}}') +
      '}},"jsonrpc":"2.0","more":[ ]}',
  );
});

test('a request without params gets them', async () => {
  const got = await forward('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
  expect(got.text).toBe(
    `{"jsonrpc":"2.0","id":"${got.id}","method":"tools/list","params":{"_meta":{${envelope('{"roots":{"listChanged":true},"elicitation":{"form":{}},"extensions":{"a/b":{}}}')}}}}`,
  );
});

test('a client without an event stream declares nothing that it would be asked over one', async () => {
  const got = await forward(toolCall('1'), () => {}, false);
  expect(got.text).toContain(envelope('{"extensions":{"a/b":{}}}'));
});

test('the headers say what the body says, and the credentials are the provider’s own', async () => {
  const { headers } = await forward(
    toolCall('1', 'tool', ',"arguments":{"region":"grün","count":3,"other":"x"}'),
    ({ schemas }) =>
      schemas.set('tool', {
        type: 'object',
        properties: {
          region: { type: 'string', 'x-mcp-header': 'Region' },
          count: { type: 'integer', 'x-mcp-header': 'Count' },
        },
      }),
  );
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'tool',
    'mcp-param-region': '=?base64?Z3LDvG4=?=',
    'mcp-param-count': '3',
    authorization: 'Bearer provider-secret',
  });
  expect(headers['x-request-id']).toMatch(/^gen-/);
  expect(headers['mcp-session-id']).toBeUndefined();
});

test('the Mcp-Name header is the URI of a resource and the name of a prompt', async () => {
  const read = await forward('{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://ü"}}');
  expect(read.headers['mcp-name']).toBe(`=?base64?${Buffer.from('test://ü').toString('base64')}?=`);
  const prompt = await forward('{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}');
  expect(prompt.headers['mcp-name']).toBe('p');
});

test('an envelope of the client’s own does not stand beside the bridge’s', async () => {
  const got = await forward(
    toolCall('1', 'tool', ',"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"other","version":"0"}}'),
  );
  expect(got.text).not.toContain('"other"');
  expect(got.text.split('io.modelcontextprotocol/clientInfo')).toHaveLength(2);
});

test('capabilities in which a key stands twice are sent as they are gone by', async () => {
  const server = await startRawServer((_got, reply) => reply.result(OK));
  const world = await startBridge(server.url);
  const initialize =
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"roots":{},"sampling":{"a":1},"sampling":{"b":1}}}}';
  await world.ask({ ...world.session(), initialize }, toolCall('1'));
  expect(server.got[0]!.text).toContain('"io.modelcontextprotocol/clientCapabilities":{"roots":{},"sampling":{"b":1}}');
  expect(await world.faults()).toEqual([]);
});
