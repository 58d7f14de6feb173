import { readdirSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { newDataDirectory } from '../../support/data-directory.ts';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { open, post } from '../sessions/session-world.ts';
import { callTool, modernPost, toolToml, type PostOptions, type Reply } from './modern-post.ts';

// A repeat of a call gets the same outcome, however large it is: it was paid for.

const MIB = 1024 * 1024;
const PRICE = 1_000n;
const dataDir = newDataDirectory();
let server: RawMcp;
let spine: Spine;
const start = (media = '') =>
  startSpine({
    dataDir,
    toml: `${UNHURRIED}[media]\nfree_bytes_min = 1\n${media}${toolToml({ name: 'large', url: server.url })}${toolToml({ name: 'free', url: server.url, pricing: 'per_call = 0', provider: 'Free' })}`,
  });
beforeAll(async () => {
  // The ends of lines between its tokens are the server's own.
  server = await startRawMcp(
    ({ params }) => {
      const run = `run ${server.asked.length} é\\n${'x'.repeat((params['arguments'] as { mib: number }).mib * MIB)}`;
      const result = `{\r\n "resultType": "complete",\n "content": [{"type":"text","text":"${run}"}]}`;
      if (params['name'] !== 'streamed') return result;
      return (response, { idText }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const message = `{"jsonrpc":"2.0","id":${idText},"result":${result.replaceAll(/\s*\n /g, '')}}`;
        response.end(`event: message\ndata: ${message}\n\n`);
      };
    },
    ['{"name":"read","inputSchema":{"type":"object"}}'],
  );
  spine = await start();
});
afterAll(async () => {
  await spine.stop();
  await server.close();
  rmSync(dataDir, { recursive: true, force: true });
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const keyed = (key: string): PostOptions => ({ meta: { 'tollgate/idempotency-key': key } });
/** The outcome as it was written, without what stands around it. */
const outcomeOf = ({ text, message: { id } }: Reply) => {
  const around = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},`;
  const whole = text.startsWith('event: ') ? text.slice(text.indexOf('data: ') + 6, -2) : text;
  expect([whole.startsWith(around), whole.at(-1)]).toEqual([true, '}']);
  return whole.slice(around.length, -1);
};
/** What two asks for the same cost, and how often the tool ran. */
const twice = async <R>(ask: (id: string) => Promise<R>) => {
  const [{ available }, ran] = [await spine.balance(), server.asked.length];
  const replies = [await ask('first'), await ask('second')] as const;
  return { replies, spent: available - (await spine.balance()).available, ran: server.asked.length - ran };
};

test.each([
  ['read', 1.5],
  ['streamed', 2],
])('what %s gives is repeated byte for byte under the id of whoever asks, charged once', async (tool, mib) => {
  const { replies, ...was } = await twice((id) => callTool(spine, 'large', tool, { mib }, { ...keyed(tool), id }));
  expect(was).toEqual({ spent: PRICE, ran: 1 });
  const [first, again] = replies;
  expect([again.status, again.message.id]).toEqual([200, 'second']);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(again.headers.get('content-length')).toBe(String(Buffer.byteLength(again.text)));
  expect(outcomeOf(again).length).toBeGreaterThan(mib * MIB);
  expect(outcomeOf(again) === outcomeOf(first)).toBe(true);
  expect(again.message.result).toMatchObject({ _meta: { 'tollgate/generation': { cost: '0.001' } } });
  // Other arguments are another call, and another account has keys of its own.
  expect((await callTool(spine, 'large', tool, { mib: 1 }, keyed(tool))).status).toBe(409);
  const { key } = await spine.tenant(`other-${tool}`, '1');
  const theirs = await callTool(spine, 'large', tool, { mib }, { ...keyed(tool), key });
  expect(theirs.headers.get('idempotent-replayed')).toBeNull();
});

test('a session has it, too, and the address of all services; a batch has no room for it', async () => {
  const ask =
    (path: string, key: string, batch = false) =>
    async (id: string) => {
      const url = spine.origin + path;
      const initialize = {
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: {
          protocolVersion: batch ? '2025-03-26' : '2025-11-25',
          capabilities: {},
          clientInfo: { name: 't', version: '1' },
        },
      };
      const session = await open(url, spine.key, initialize);
      const name = path === '/mcp' ? 'large__read' : 'read';
      const call = { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: { mib: 1.5 } } };
      const reply = await post(url, spine.key, session, batch ? [call] : call, { 'idempotency-key': key });
      const text = await reply.text();
      return {
        text,
        json: JSON.parse(
          text.startsWith('event: ') ? text.slice(text.indexOf('data: ') + 6) : text,
        ) as Reply['message'],
      };
    };
  for (const [path, key] of [
    ['/mcp/large', 'session'],
    ['/mcp', 'all'],
  ] as const) {
    const { replies, ...was } = await twice(ask(path, key));
    expect([path, was]).toEqual([path, { spent: PRICE, ran: 1 }]);
    const [first, again] = replies;
    expect(again.json).toEqual({ ...first.json, id: 'second' });
  }
  const { replies, ...was } = await twice(ask('/mcp/large', 'batch', true));
  expect(was).toEqual({ spent: PRICE, ran: 1 });
  expect(replies[1].json).toMatchObject([
    { id: 'second', error: { code: -32014, message: expect.stringMatching(/not kept/) as string } },
  ]);
});

test('what costs nothing, and what has no room, is not kept: a repeat is told so', async () => {
  const { replies: free } = await twice(() => callTool(spine, 'free', 'read', { mib: 1.5 }, keyed('free')));
  expect(free[1].message.error).toMatchObject({ code: -32014, data: { type: 'idempotency_conflict' } });
  await spine.stop();
  spine = await start('file_bytes_max = 1258291\n');
  const { replies, ...was } = await twice(() => callTool(spine, 'large', 'read', { mib: 2 }, keyed('no room')));
  expect(was).toEqual({ spent: PRICE, ran: 1 });
  expect(replies.map(({ status }) => status)).toEqual([200, 409]);
  expect(replies[1].message.error?.message).toMatch(/not kept/);
  // One that was kept before is still there.
  const again = await callTool(spine, 'large', 'read', { mib: 1.5 }, keyed('read'));
  expect([again.headers.get('idempotent-replayed'), again.text.length > MIB]).toEqual(['true', true]);
});

test('a file that is not whole any more breaks the answer off; one that is gone is an error', async () => {
  const files = () =>
    readdirSync(join(dataDir, 'blobs'), { recursive: true, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
    );
  const ask = () =>
    modernPost(spine, '/mcp/large', 'tools/call', { name: 'read', arguments: { mib: 1.5 } }, keyed('read'));
  for (const file of files()) truncateSync(file, MIB);
  await expect(ask()).rejects.toThrow();
  for (const file of files()) rmSync(file);
  expect(await ask()).toMatchObject({ status: 503, message: { error: { data: { type: 'service_unavailable' } } } });
});
