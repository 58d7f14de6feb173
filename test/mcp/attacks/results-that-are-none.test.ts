import { expect, test } from 'vitest';
import { startRawMcp, type Asked, type RawAnswer } from '../../support/raw-mcp.ts';
import { callTool, modernPost, toolToml } from '../calls/modern-post.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

const RESULT = '{"content":[],"resultType":"complete"}';

const whole =
  (text: (id: string) => string, status: number) =>
  ({ idText }: Asked): RawAnswer =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(text(idText));
const resultWith = (status: number) => whole((id) => `{"jsonrpc":"2.0","id":${id},"result":${RESULT}}`, status);
const errorWith = (status: number) =>
  whole((id) => `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"no key"}}`, status);

/** Each tool answers in its own way. */
const ANSWERS: Readonly<Record<string, (asked: Asked) => RawAnswer>> = {
  null: () => 'null',
  number: () => '5',
  text: () => '"x"',
  list: () => '[]',
  'a result with 500': resultWith(500),
  'a result with 401': resultWith(401),
  'a result with 202': resultWith(202),
  'an error with 401': errorWith(401),
  'an error with 403': errorWith(403),
  'an error with 400': errorWith(400),
  'an error with 299': errorWith(299),
  'a key twice': () => '{"content":[],"content":[],"resultType":"complete"}',
  'a key twice, and _meta': () =>
    '{"content":[],"content":[],"_meta":{"tollgate/generation":{"cost":"0"}},"resultType":"complete"}',
  'a key twice, asking': () =>
    '{"inputRequests":{},"inputRequests":{},"requestState":"s","resultType":"input_required"}',
  'an id as text': whole((id) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${RESULT}}`, 200),
  'behind a keep-alive':
    ({ idText }) =>
    (response) =>
      void response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(`event: ping\ndata: {}\n\ndata: {"jsonrpc":"2.0","id":${idText},"result":${RESULT}}\n\n`),
  'two types':
    ({ idText }) =>
    ({ socket }) => {
      const body = `{"jsonrpc":"2.0","id":${idText},"result":${RESULT}}`;
      const type = 'content-type: application/json\r\n';
      socket!.end(
        `HTTP/1.1 200 OK\r\n${type}${type}content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      );
    },
};

const server = ofFile(
  () =>
    startRawMcp((asked) => {
      if (asked.method === 'tools/list')
        return '{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"t","inputSchema":{},"_meta":{"tollgate/price":{"per_call":"0"}}}],"x":1,"x":2}';
      return ANSWERS[String(asked.params['name'])]!(asked);
    }),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({
  toml: `${toolToml({ name: 'odd', url: server.url })}\n[upstream]\ncooldown_ms = 0\n`,
}));

test.each([
  ['null', 502, 0n],
  ['number', 502, 0n],
  ['text', 502, 0n],
  ['list', 502, 0n],
  ['a result with 500', 502, 0n],
  ['a result with 401', 502, 0n],
  ['a result with 202', 200, 1_000n],
  ['an error with 401', 502, 0n],
  ['an error with 403', 502, 0n],
  ['an error with 400', 400, 0n],
  ['an error with 299', 200, 0n],
  ['a key twice', 200, 1_000n],
  ['a key twice, and _meta', 200, 1_000n],
  ['a key twice, asking', 502, 0n],
  ['an id as text', 200, 1_000n],
  ['behind a keep-alive', 200, 1_000n],
  ['two types', 200, 1_000n],
] as const)('%s: the client gets %s and pays %s micro-USD', async (tool, status, micro) => {
  const before = (await spine.balance()).available;
  const reply = await callTool(spine, 'odd', tool);
  expect(await spine.faults()).toEqual([]);
  expect(before - (await spine.balance()).available).toBe(micro);
  expect(reply.status).toBe(status);
  // Whoever pays has the result.
  if (micro > 0n)
    expect(reply.message.result).toMatchObject({ content: [], _meta: { 'tollgate/generation': { cost: '0.001' } } });
  else expect(reply.message.error?.code).not.toBe(-32_603);
});

test('a list that cannot be read is not passed on, as a server could write prices of its own into it', async () => {
  const reply = await modernPost(spine, '/mcp/odd', 'tools/list');
  expect(reply.text).not.toContain('per_call');
  expect(reply.status).toBe(502);
});
