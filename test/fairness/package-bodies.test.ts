import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createSdkUpstream } from '#network';
import { loadPool } from '#wire/undici';

// Calls of one process of a package share the memory for their bodies. The process is a server that answers when the
// test says so.

const LARGE = Buffer.alloc(9_500_000, 'a');

async function startProcess() {
  const begun: string[] = [];
  const held = new Map<string, ServerResponse>();
  let change = () => {};
  const server = createServer((request, response) => {
    const call = request.url!.slice(1);
    begun.push(call);
    held.set(call, response);
    request.resume();
    change();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dispatcher = new (loadPool())(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const upstream = createSdkUpstream({
    headTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    connectionsMax: 100,
    open: () => dispatcher,
    close: () => dispatcher.destroy(),
  });
  onTestFinished(async () => {
    await upstream.close();
    server.closeAllConnections();
    server.close();
  });
  return {
    begun,
    send(account: string, call: string, body: Buffer | string) {
      const request = { method: 'POST', path: `/${call}`, headers: {}, body, listens: false } as const;
      const { head } = upstream.send({ sdk: {}, headers: {} } as never, request, account);
      head.catch(() => {});
      return head;
    },
    end(call: string) {
      held.get(call)!.end('ok');
    },
    async until(...calls: string[]) {
      while (!calls.every((call) => held.has(call))) await new Promise<void>((resolve) => (change = resolve));
    },
  };
}

test('an account with many large calls leaves room to others, and waits for its own', async () => {
  const { begun, send, end, until } = await startProcess();
  for (let n = 0; n < 20; n += 1) void send('greedy', `greedy-${n}`, LARGE);
  await until('greedy-0', 'greedy-1', 'greedy-2');
  void send('patient', 'patient', LARGE);
  await until('patient');
  void send('late', 'late', LARGE);
  await until('late');
  expect(begun.toSorted()).toEqual(['greedy-0', 'greedy-1', 'greedy-2', 'late', 'patient']);
  // What is left is less than the next one needs. It has its turn before the rest of the first.
  const last = send('last', 'last', LARGE);
  end('greedy-0');
  await until('last');
  expect(begun).toHaveLength(6);
  end('last');
  expect((await last).status).toBe(200);
});

test('a small call waits for no large one', async () => {
  const { begun, send, end, until } = await startProcess();
  for (const account of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
    for (let n = 0; n < 3; n += 1) void send(account, `${account}-${n}`, LARGE);
  await until('a-0', 'a-1', 'a-2', 'b-0', 'c-0');
  const small = send('patient', 'patient', '{"messages":[]}');
  // Not even for those of its own account, which has all that it gets.
  const own = send('a', 'own', '{"messages":[]}');
  await until('patient', 'own');
  end('patient');
  end('own');
  expect([(await small).status, (await own).status]).toEqual([200, 200]);
  expect(begun).toHaveLength(7);
});
