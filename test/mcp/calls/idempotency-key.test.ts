import { expect, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { callTool, toolToml, type PostOptions } from './modern-post.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

let count = 0;
let hold: Promise<void> | null = null;
const server = ofFile(
  () =>
    startRawMcp(async ({ params }) => {
      if (hold) await hold;
      if (params['name'] === 'fails') return '{"resultType":"complete","isError":true,"content":[]}';
      return `{"resultType":"complete","content":[{"type":"text","text":"run ${++count}"}]}`;
    }),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({ toml: toolToml({ name: 'once', url: server.url }) }));

const keyed = (key: string, options: PostOptions = {}): PostOptions => ({
  ...options,
  meta: { 'tollgate/idempotency-key': key },
});

test('the same key and call give the same result under the id of whoever asks, charged once', async () => {
  const before = (await spine.balance()).available;
  const first = await callTool(spine, 'once', 'run', { a: 1 }, keyed('k-1'));
  const again = await callTool(spine, 'once', 'run', { a: 1 }, { ...keyed('k-1'), id: 'second' });
  expect(again.message.id).toBe('second');
  expect(again.message.result).toEqual(first.message.result);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect((await spine.balance()).available).toBe(before - 1_000n);
  expect(server.asked.at(-1)!.text).not.toContain('idempotency');
  expect(await spine.faults()).toEqual([]);
});

test('the header is the same as the member of _meta', async () => {
  const before = (await spine.balance()).available;
  await callTool(spine, 'once', 'run', {}, { headers: { 'idempotency-key': 'k-2' } });
  await callTool(spine, 'once', 'run', {}, keyed('k-2'));
  expect((await spine.balance()).available).toBe(before - 1_000n);
});

test('the same key with other arguments is refused', async () => {
  await callTool(spine, 'once', 'run', { a: 1 }, keyed('k-3'));
  const other = await callTool(spine, 'once', 'run', { a: 2 }, keyed('k-3'));
  expect(other.status).toBe(409);
  expect(other.message.error).toMatchObject({ code: -32014, data: { type: 'idempotency_conflict' } });
});

test('a result that failed is repeated as well, and costs nothing', async () => {
  const before = (await spine.balance()).available;
  const seen = server.asked.length;
  const first = await callTool(spine, 'once', 'fails', {}, keyed('k-4'));
  const again = await callTool(spine, 'once', 'fails', {}, { ...keyed('k-4'), id: 9 });
  expect(again.message).toEqual({ ...first.message, id: 9 });
  expect(server.asked.length).toBe(seen + 1);
  expect((await spine.balance()).available).toBe(before);
});

test('a run whose client left goes to its end, and the retry finds it', async () => {
  const before = (await spine.balance()).available;
  const released = Promise.withResolvers<void>();
  hold = released.promise;
  const client = new AbortController();
  const seen = server.asked.length;
  const first = callTool(spine, 'once', 'run', {}, { ...keyed('k-5'), signal: client.signal }).catch(() => null);
  while (server.asked.length === seen) await new Promise((resolve) => setTimeout(resolve, 5));
  const running = await callTool(spine, 'once', 'run', {}, keyed('k-5'));
  expect(running.status).toBe(409);
  client.abort();
  await first;
  released.resolve();
  hold = null;
  await spine.quiet();
  const again = await callTool(spine, 'once', 'run', {}, keyed('k-5'));
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect((await spine.balance()).available).toBe(before - 1_000n);
  expect(await spine.faults()).toEqual([]);
});

test('a call without a tool is refused, with a key as without', async () => {
  const headers = {
    authorization: `Bearer ${spine.key}`,
    'content-type': 'application/json',
    'idempotency-key': 'k-none',
  };
  for (const params of ['', ',"params":{}', ',"params":{"name":7}']) {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call"${params}}`;
    const response = await fetch(`${spine.origin}/mcp/once`, { method: 'POST', headers, body });
    expect(await response.json(), body).toMatchObject({ id: 1, error: { code: -32602 } });
  }
});

test('another account has keys of its own', async () => {
  const other = await spine.tenant('keys', '1');
  await callTool(spine, 'once', 'run', { a: 1 }, keyed('k-6'));
  const theirs = await callTool(spine, 'once', 'run', { a: 1 }, { ...keyed('k-6'), key: other.key });
  expect(theirs.headers.get('idempotent-replayed')).toBeNull();
});
