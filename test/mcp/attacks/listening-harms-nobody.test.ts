import { expect, test } from 'vitest';
import { createStreamQuota } from '#limits';
import { boundedListens } from '../../../src/mcp/call/stateless.ts';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { callTool, modernPost, toolToml } from '../calls/modern-post.ts';

const LISTEN = { notifications: { toolsListChanged: true } };

test('an account has so many streams at services and no more, longer than a call may take, and its provider is not taken for slow', async () => {
  const opened = { count: 0 };
  const server = await startRawMcp(({ method }) => {
    if (method !== 'subscriptions/listen') return '{"content":[],"resultType":"complete"}';
    opened.count++;
    return (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': listening\n\n');
  });
  const toml = `${toolToml({ name: 'acme', url: server.url })}\n[limits]\nlistens_max = 12\n[upstream]\ncall_timeout_ms = 3000\n`;
  const spine = await startSpine({ toml });
  const leave = new AbortController();
  const streams = Array.from({ length: 12 }, () =>
    modernPost(spine, '/mcp/acme', 'subscriptions/listen', LISTEN, { signal: leave.signal }),
  );
  const ended = Promise.race(streams).then(
    () => 'ended',
    () => 'left',
  );
  while (opened.count < 12) await new Promise((resolve) => setTimeout(resolve, 10));
  expect((await modernPost(spine, '/mcp/acme', 'subscriptions/listen', LISTEN)).status).toBe(429);
  expect(await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 4_000, 'open'))])).toBe('open');
  expect((await callTool(spine, 'acme', 'any')).status).toBe(200);
  // A gateway that stops does not wait for them.
  const stopped = spine.stop();
  expect(await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 60_000, 'open'))])).toBe('ended');
  const { status, message } = await streams[0]!;
  expect([status, message.result['resultType']]).toEqual([200, 'complete']);
  await stopped;
  leave.abort();
  await server.close();
});

test('a place is free again when its stream is over, however that ends', async () => {
  const account = { account: 'tollgate:local:alice', key: null, wallet: null };
  const context = { caller: account, requestId: 'r', headers: {}, selection: null, gone: new AbortController().signal };
  const request = {
    client: 'modern',
    // Parsing rounds this id, but the client must get it as it wrote it.
    message: { id: Number('9007199254740993'), idText: '9007199254740993', method: 'subscriptions/listen' },
    capabilities: {},
    events: true,
  } as never;
  let runs = 0;
  const places = createStreamQuota({ max: 1, lastsMs: 5 });
  const run = boundedListens(async (_service, _request, { gone }, within) => {
    runs++;
    if (runs === 1) throw new Error('broken');
    await new Promise<void>((resolve) => gone.addEventListener('abort', resolve));
    within.close();
  }, places);
  const said: string[] = [];
  const answer = {
    events: async () => {},
    end: (text: string) => void said.push(text),
    body: () => null,
    close: () => void said.push('closed'),
  };
  await expect(run('acme', request, context, answer)).rejects.toThrow('broken');
  expect(places.count).toBe(0);
  await run('acme', request, context, answer);
  expect(said).toEqual([
    '{"jsonrpc":"2.0","id":9007199254740993,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":9007199254740993}}}',
  ]);
  expect(places.count).toBe(0);
});

test('a call that a consumer lets run into the clock is not counted against its provider', async () => {
  const server = await startRawMcp(({ params }) =>
    params['name'] === 'slow'
      ? (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': begun\n\n')
      : '{"content":[],"resultType":"complete"}',
  );
  const spine = await startSpine({
    toml: `${toolToml({ name: 'acme', url: server.url })}\n[upstream]\ncall_timeout_ms = 3000\n`,
  });
  const slow = await Promise.all(Array.from({ length: 12 }, () => callTool(spine, 'acme', 'slow')));
  for (const { status } of slow) expect(status).toBe(502);
  expect((await callTool(spine, 'acme', 'quick')).status).toBe(200);
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await server.close();
});
