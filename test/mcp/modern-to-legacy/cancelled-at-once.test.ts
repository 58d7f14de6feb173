import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startSpine } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';
import { events, startScripted } from '../sessions/scripted-server.ts';
import { startSdkServer } from '../sessions/sdk-server.ts';

/** A gateway that reads on for a minute after a client has left, with a client of 2026-07-28. */
async function start(url: string) {
  const spine = await startSpine({ toml: `[billing]\ndrain_ms = 60000\n${toolToml({ name: 'acme/tool', url })}` });
  const mode = { pin: '2026-07-28' } as const;
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  const requestInit = { headers: { authorization: `Bearer ${spine.key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${spine.origin}/mcp/acme/tool`), { requestInit }));
  onTestFinished(async () => {
    await client.close();
    await spine.stop();
  });
  return { spine, client };
}

test('a cancelled call is cancelled at a server with sessions at once, which stops; its lock is given back, and it is free', async () => {
  const server = await startSdkServer();
  const { spine, client } = await start(server.url);
  const before = (await spine.balance()).available;
  const cancel = new AbortController();
  const result = client.callTool({ name: 'wait', arguments: {} }, { signal: cancel.signal });
  await server.waiting(1);
  expect((await spine.balance()).available).toBe(before - 1_000n);
  cancel.abort();
  await expect(result).rejects.toThrow();
  const beganAt = performance.now();
  await spine.quiet();
  // Far less than the time in which the gateway reads on.
  expect(performance.now() - beganAt).toBeLessThan(30_000);
  expect(server.requests.filter((line) => line.endsWith(' notifications/cancelled'))).toHaveLength(1);
  expect((await spine.balance()).available).toBe(before);
  expect(await spine.faults()).toEqual([]);
});

/** A server that answers a call when `answers` resolves, and cancellations with `status`. */
async function startLate(status: number, answers: Promise<unknown>) {
  const called = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  const server = await startScripted({
    async answer({ message }, response) {
      if (message.method === 'notifications/cancelled') {
        response.writeHead(status).end();
        cancelled.resolve();
      }
      if (message.method !== 'tools/call') return;
      const stream = events(response, ': begun\n\n');
      called.resolve();
      await answers;
      stream.end(`data: {"jsonrpc":"2.0","id":${String(message.id)},"result":{"content":[]}}\n\n`);
    },
  });
  return { server, called: called.promise, cancelled: cancelled.promise };
}

test.each([
  ['an answer that comes too late after a cancellation is not paid', 202, 0n],
  ['a server that refuses the cancellation works on, and is paid as if its client had only left', 405, 1_000n],
])('%s', async (_what, status, charged) => {
  const answers = Promise.withResolvers<void>();
  const { server, called, cancelled } = await startLate(status, answers.promise);
  const { spine, client } = await start(server.url);
  const before = (await spine.balance()).available;
  const cancel = new AbortController();
  const result = client.callTool({ name: 'any', arguments: {} }, { signal: cancel.signal });
  await called;
  cancel.abort();
  await expect(result).rejects.toThrow();
  await cancelled;
  if (charged === 0n) await expect.poll(async () => (await spine.balance()).locked).toBe(0n);
  else {
    await pause(3_000);
    expect((await spine.balance()).locked).toBe(1_000n);
  }
  answers.resolve();
  await spine.quiet();
  expect((await spine.balance()).available).toBe(before - charged);
  expect(await spine.faults()).toEqual([]);
});

test('an answer that was on its way when its client cancelled is paid', async () => {
  const called = Promise.withResolvers<ServerResponse>();
  const server = await startScripted({
    async answer({ message }, response) {
      if (message.method === 'tools/call') called.resolve(events(response, ': begun\n\n'));
      if (message.method === 'notifications/cancelled')
        (await called.promise).end(
          `data: {"jsonrpc":"2.0","id":${String(message.params!['requestId'])},"result":{"content":[]}}\n\n`,
        );
    },
  });
  const { spine, client } = await start(server.url);
  const before = (await spine.balance()).available;
  const cancel = new AbortController();
  const result = client.callTool({ name: 'any', arguments: {} }, { signal: cancel.signal });
  await called.promise;
  cancel.abort();
  await expect(result).rejects.toThrow();
  await spine.quiet();
  expect((await spine.balance()).available).toBe(before - 1_000n);
  expect(await spine.faults()).toEqual([]);
});
