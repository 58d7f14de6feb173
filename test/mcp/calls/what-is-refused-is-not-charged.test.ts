import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { openRawServer } from '../modern-to-legacy/raw-legacy-server.ts';
import { callTool, modernPost, toolToml } from './modern-post.ts';

// Arguments that are no object go to no server, and an answer to another request is none: nobody pays for either.

const RESULT = '{"content":[],"resultType":"complete"}';
const OTHER = `{"jsonrpc":"2.0","id":"another","result":${RESULT}}`;
const UNREAD = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}';

let modern: RawMcp;
let legacy: Awaited<ReturnType<typeof openRawServer>>;
let spine: Spine;
beforeAll(async () => {
  modern = await startRawMcp(({ params }) => {
    const body = { other: OTHER, unread: UNREAD }[String(params['name'])];
    return body === undefined
      ? RESULT
      : (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  });
  legacy = await openRawServer(({ message }) => {
    const { id, params } = message;
    return (
      { other: OTHER, unread: UNREAD }[String(params?.['name'])] ??
      `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[]}}`
    );
  });
  spine = await startSpine({
    toml: `${toolToml({ name: 'modern', url: modern.url })}${toolToml({ name: 'legacy', url: legacy.url })}\n[upstream]\ncooldown_ms = 0\n`,
  });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await Promise.all([modern.close(), legacy.close()]);
});

const session = async (service: string, params: object) => {
  const headers: Record<string, string> = {
    authorization: `Bearer ${spine.key}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const post = (message: object) =>
    fetch(`${spine.origin}/mcp/${service}`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
  const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const opened = await post({ id: 0, method: 'initialize', params: initialize });
  headers['mcp-session-id'] = opened.headers.get('mcp-session-id')!;
  const reply = await post({ id: 1, method: 'tools/call', params });
  return { status: reply.status, text: await reply.text() };
};

const tools = () =>
  [...modern.asked.map(({ method }) => method), ...legacy.seen.map(({ message }) => message.method)].filter(
    (m) => m === 'tools/call',
  );

test.each([
  ['a string', '"x"'],
  ['an array', '[]'],
  ['a number', '7'],
])('arguments that are %s are refused, to a client of either era and without one', async (what, written) => {
  const before = [(await spine.balance()).available, tools().length];
  const given = JSON.parse(written) as object;
  const message = `params.arguments is ${what}: it must be an object, {} for a tool that takes none`;
  const error = { code: -32602, message, data: { type: 'invalid_request', param: 'params.arguments' } };
  const asked = await callTool(spine, 'modern', 'any', given);
  expect([asked.status, asked.message.error]).toEqual([400, error]);
  for (const service of ['modern', 'legacy']) {
    const { status, text } = await session(service, { name: 'any', arguments: given });
    expect([status, text]).toEqual([200, expect.stringContaining(message)]);
  }
  const bare = await fetch(`${spine.origin}/mcp/legacy`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any","arguments":${written}}}`,
  });
  expect([bare.status, await bare.json()]).toMatchObject([400, { id: 1, error }]);
  expect([(await spine.balance()).available, tools().length]).toEqual(before);
});

test('a call without arguments is made', async () => {
  expect((await modernPost(spine, '/mcp/modern', 'tools/call', { name: 'any' })).message.result).toMatchObject({
    content: [],
  });
});

test.each(['modern', 'legacy'])(
  'an answer of a %s server with the id of another request is malformed',
  async (service) => {
    const before = (await spine.balance()).available;
    const { status, message } = await callTool(spine, service, 'other');
    expect([status, message.error?.code]).toEqual([502, -32017]);
    expect(message.error?.message).toContain('response has the id "another", but the request has the id');
    expect((await session('legacy', { name: 'other', arguments: {} })).text).toContain('-32017');
    // Which request could not be read, its server does not know.
    expect((await callTool(spine, service, 'unread')).message.error).toMatchObject({
      code: -32700,
      message: 'Parse error',
    });
    expect((await spine.balance()).available).toBe(before);
  },
);
