import { afterEach, beforeEach, expect, test } from 'vitest';
import { startRawMcp, type Asked } from '../../support/raw-mcp.ts';
import { UNHURRIED } from '../../support/spine.ts';
import { until } from '../../support/tunnel-spine.ts';
import { callTool, toolToml, type PostOptions } from '../calls/modern-post.ts';
import { callMessage, lastOf, openSession, send, type OldSession } from './clients.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// A client that leaves, at whatever moment: what it pays, and what it gets when it asks again.

const DONE = '{"resultType":"complete","content":[{"type":"text","text":"done"}]}';
const PRICE = 1_000n;

let begun: Asked[] = [];
/** Lets calls of `wait` answer; `stop` never does. */
let gate = Promise.withResolvers<void>();
let before = 0n;
const server = ofFile(
  () =>
    startRawMcp(
      async (asked) => {
        begun.push(asked);
        if (asked.params['name'] === 'stop') return () => {};
        if (asked.params['name'] === 'wait') await gate.promise;
        return DONE;
      },
      ['do', 'wait', 'stop'].map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`),
    ),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}\n[billing]\ndrain_ms = 2000\n${toolToml({ name: 'tools', url: server.url })}`,
}));
beforeEach(async () => {
  begun = [];
  gate = Promise.withResolvers<void>();
  before = (await spine.balance()).available;
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const finish = () => gate.resolve();
const paid = async () => before - (await spine.balance()).available;
/** A key of its own. */
const keyed = (key: string) => ({ 'tollgate/idempotency-key': key });

/** The gateway has seen that a client left: what was asked after it is answered. */
async function noticed(): Promise<void> {
  for (let round = 0; round < 3; round++) await (await fetch(`${spine.origin}/health/live`)).text();
}

/** Calls a tool, and leaves once its server has the call. */
async function leave(tool: string, options: PostOptions = {}): Promise<void> {
  const leaving = new AbortController();
  const { length } = begun;
  const reply = callTool(spine, 'tools', tool, {}, { ...options, signal: leaving.signal }).catch(() => null);
  await until(() => begun.length > length);
  leaving.abort();
  await reply;
  await noticed();
}

test('while the tool runs: its answer is paid if it comes within the drain time, and a retry is another call', async () => {
  await leave('wait');
  finish();
  await spine.quiet();
  expect(await paid()).toBe(PRICE);
  expect((await callTool(spine, 'tools', 'wait')).message.result.content).toEqual([{ type: 'text', text: 'done' }]);
  expect(begun).toHaveLength(2);
  expect(await paid()).toBe(2n * PRICE);
});

test('while the tool runs, and it does not end within the drain time: it is told, and nothing is paid', async () => {
  await leave('stop');
  await until(() => begun[0]!.left.aborted);
  await spine.quiet();
  expect(await paid()).toBe(0n);
});

test('with an idempotency key, while the tool runs: it runs to its end, a retry meanwhile is told so, and one afterwards gets the answer unpaid', async () => {
  await leave('wait', { meta: keyed('runs') });
  const meanwhile = await callTool(spine, 'tools', 'wait', {}, { meta: keyed('runs') });
  expect(meanwhile.status).toBe(409);
  // The drain time of another has passed: nobody cuts this one off.
  await leave('stop');
  await until(() => begun[1]!.left.aborted);
  expect(begun[0]!.left.aborted).toBe(false);
  finish();
  await spine.quiet();
  expect(await paid()).toBe(PRICE);
  const reply = callTool(spine, 'tools', 'wait', {}, { meta: keyed('runs'), id: 'again' });
  expect((await reply).headers.get('idempotent-replayed')).toBe('true');
  expect((await reply).message).toMatchObject({ id: 'again', result: { content: [{ text: 'done' }] } });
  expect(begun).toHaveLength(2);
  expect(await paid()).toBe(PRICE);
});

test('with an idempotency key, after the result: the retry gets it again, unpaid', async () => {
  await leaveAfterResult({ 'idempotency-key': 'ended' });
  expect((await callTool(spine, 'tools', 'do', {}, { meta: keyed('ended') })).headers.get('idempotent-replayed')).toBe(
    'true',
  );
  expect(await paid()).toBe(PRICE);
});

test('after the result, without a key: it is paid, and a retry is paid again', async () => {
  await leaveAfterResult();
  await callTool(spine, 'tools', 'do');
  expect(await paid()).toBe(2n * PRICE);
});

/** Takes the head of the answer, which is after the settlement, and leaves. */
async function leaveAfterResult(headers: Record<string, string> = {}): Promise<void> {
  const leaving = new AbortController();
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const response = await fetch(`${spine.origin}/mcp/tools`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      accept: 'application/json',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'do',
      ...headers,
    },
    body: JSON.stringify({ ...callMessage('do'), params: { ...callMessage('do').params, _meta: envelope } }),
    signal: leaving.signal,
  });
  expect(response.headers.get('x-cost-usd')).toBe('0.001');
  leaving.abort();
}

/** A client with a session calls and leaves once the server has the call. */
async function leaveSession(session: OldSession, tool: string, id: number, meta?: object): Promise<void> {
  const leaving = new AbortController();
  const { length } = begun;
  const reply = send(session, callMessage(tool, {}, id, meta), leaving.signal).catch(() => null);
  await until(() => begun.length > length);
  leaving.abort();
  await reply;
  await noticed();
}

test('a client with a session, while the tool runs: as any other', async () => {
  const session = await openSession(spine, 'tools');
  await leaveSession(session, 'wait', 1);
  finish();
  await spine.quiet();
  expect(await paid()).toBe(PRICE);
  await leaveSession(session, 'stop', 2);
  await until(() => begun[1]!.left.aborted);
  await spine.quiet();
  expect(await paid()).toBe(PRICE);
});

test('a client with a session and a key: the retry, under another id, gets the answer unpaid', async () => {
  const session = await openSession(spine, 'tools');
  await leaveSession(session, 'wait', 1, keyed('of a session'));
  finish();
  await spine.quiet();
  const reply = await send(session, callMessage('wait', {}, 2, keyed('of a session')));
  expect(reply.headers.get('idempotent-replayed')).toBe('true');
  expect(await lastOf(reply)).toMatchObject({ id: 2, result: { content: [{ text: 'done' }] } });
  expect([begun.length, await paid()]).toEqual([1, PRICE]);
});

test('a client with a session that says notifications/cancelled: the tool is told, nothing is paid, and there is no response', async () => {
  const session = await openSession(spine, 'tools');
  const reply = send(session, callMessage('stop', {}, 7));
  await until(() => begun.length === 1);
  expect(
    (await send(session, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })).status,
  ).toBe(202);
  expect(await (await reply).text()).toBe('');
  await until(() => begun[0]!.left.aborted);
  await spine.quiet();
  expect(await paid()).toBe(0n);
});
