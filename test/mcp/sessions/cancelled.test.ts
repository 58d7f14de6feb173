import { expect, onTestFinished, test, vi } from 'vitest';
import { connect } from './sdk-client.ts';
import { startSdkServer } from './sdk-server.ts';
import { events, startScripted } from './scripted-server.ts';
import { open, post, PRICE, startWorld } from './session-world.ts';

const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 't', arguments: {} } };
const CANCEL = '{"jsonrpc":"2.0" ,"method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}';

test('a tool of the SDK is told, and a call that ends so is free', async () => {
  const server = await startSdkServer();
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const { client } = await connect(gateway.url, 'alice');
  const cancel = new AbortController();
  const result = client.callTool({ name: 'wait', arguments: {} }, undefined, { signal: cancel.signal });
  await server.waiting(1);
  cancel.abort('enough');
  await expect(result).rejects.toThrow('enough');
  while (gateway.endings.length === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(gateway.endings).toEqual(['wait: cancelled, 0']);
  expect(server.requests.filter((line) => line.endsWith(' notifications/cancelled'))).toHaveLength(1);
  expect(await world.faults()).toEqual([]);
});

test('a tool that answers all the same, soon enough, is paid', async () => {
  const server = await startScripted({
    answer({ message, text }, response) {
      if (message.method === 'tools/call') held.resolve(events(response, ': begun\n\n'));
      if (message.method === 'notifications/cancelled') cancelled.resolve(text);
    },
  });
  const held = Promise.withResolvers<ReturnType<typeof events>>();
  const cancelled = Promise.withResolvers<string>();
  const world = await startWorld({ url: server.url, cancelGraceMs: 5_000 });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const answer = post(gateway.url, 'alice', id, CALL);
  const response = await held.promise;
  expect((await post(gateway.url, 'alice', id, CANCEL)).status).toBe(202);
  expect(await cancelled.promise).toBe(CANCEL);
  response.end('data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n');
  expect((await answer).status).toBe(200);
  expect(await world.charged('alice')).toBe(PRICE);
  expect(await world.faults()).toEqual([]);
});

test('one that does not answer is not waited for: the reply ends without a response', async () => {
  const server = await startScripted({
    answer: ({ message }, response) =>
      message.method === 'tools/call' ? void events(response, ': begun\n\n') : undefined,
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const answer = post(gateway.url, 'alice', id, CALL);
  while (!server.asked.some(({ message }) => message.method === 'tools/call'))
    await new Promise((resolve) => setImmediate(resolve));
  await post(gateway.url, 'alice', id, CANCEL);
  expect([(await answer).status, await (await answer).text()]).toEqual([202, '']);
  expect(gateway.endings).toEqual(['t: cancelled, 0']);
  expect(await world.faults()).toEqual([]);
});

test('a server that ends the stream of a cancelled call without a response has not failed', async () => {
  const held = Promise.withResolvers<ReturnType<typeof events>>();
  const server = await startScripted({
    async answer({ message }, response) {
      if (message.method === 'tools/call') held.resolve(events(response, ': begun\n\n'));
      if (message.method === 'notifications/cancelled') (await held.promise).end();
    },
  });
  const world = await startWorld({ url: server.url, cancelGraceMs: 60_000 });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const answer = post(gateway.url, 'alice', id, CALL);
  await held.promise;
  await post(gateway.url, 'alice', id, CANCEL);
  expect([(await answer).status, await (await answer).text()]).toEqual([202, '']);
  expect([gateway.endings, gateway.failures()]).toEqual([['t: cancelled, 0'], 0]);
  expect(await world.faults()).toEqual([]);
});

test('one that answers too late is not paid, and nobody gets its answer by asking again with its id', async () => {
  const held = Promise.withResolvers<ReturnType<typeof events>>();
  const server = await startScripted({
    answer({ message }, response) {
      if (message.method === 'tools/call') held.resolve(events(response, ': begun\n\n'));
    },
  });
  const world = await startWorld({ url: server.url, cancelGraceMs: 100 });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const answer = post(gateway.url, 'alice', id, CALL);
  const response = await held.promise;
  await post(gateway.url, 'alice', id, CANCEL);
  expect([(await answer).status, await (await answer).text()]).toEqual([202, '']);
  // The lock is given back before it answers.
  expect(await world.faults()).toEqual([]);
  response.end('data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n');
  expect(await (await post(gateway.url, 'alice', id, CALL)).json()).toMatchObject({
    error: { message: expect.stringContaining('no answer yet') as string },
  });
  expect(await world.charged('alice')).toBe(0n);
  expect(gateway.failures()).toBe(0);
  expect(await world.faults()).toEqual([]);
});

test('a call that is cancelled at another gateway is free, and its end is no failure of the provider', async () => {
  const held = Promise.withResolvers<ReturnType<typeof events>>();
  const server = await startScripted({
    async answer({ message }, response) {
      if (message.method === 'tools/call') held.resolve(events(response, ': begun\n\n'));
      if (message.method === 'notifications/cancelled') (await held.promise).end();
    },
  });
  const world = await startWorld({ url: server.url });
  const [here, there] = [await world.gateway(), await world.gateway()];
  const id = await open(here.url, 'alice');
  const answer = post(here.url, 'alice', id, CALL);
  await held.promise;
  expect((await post(there.url, 'alice', id, CANCEL)).status).toBe(202);
  expect([(await answer).status, await (await answer).text()]).toEqual([202, '']);
  expect([here.endings, here.failures(), there.failures()]).toEqual([['t: cancelled, 0'], 0, 0]);
  expect(await world.faults()).toEqual([]);
});

test.each([
  ['of this gateway', false, 0],
  ['of another gateway', true, 6_000],
])(
  'a note %s that came before a request with the same id does not make its failure free of blame',
  async (_which, elsewhere, laterMs) => {
    const server = await startScripted({
      answer({ message }, response) {
        if (message.method === 'tools/call') events(response, ': begun\n\n').end();
      },
    });
    const world = await startWorld({ url: server.url });
    const here = await world.gateway();
    const noting = elsewhere ? await world.gateway() : here;
    const id = await open(here.url, 'alice');
    // The request that it is about has ended long ago.
    expect((await post(noting.url, 'alice', id, CANCEL)).status).toBe(202);
    world.clock.ahead += laterMs;
    expect(JSON.stringify(await (await post(here.url, 'alice', id, CALL)).json())).toContain('error');
    expect([here.endings.length, here.failures()]).toEqual([1, 1]);
    expect(here.endings[0]).not.toContain('cancelled');
    expect(await world.faults()).toEqual([]);
  },
);

test.each([
  ['of this gateway', false, 0],
  ['of another gateway', true, 6_000],
])('a note %s that came before a request with the same id does not cancel it', async (_which, elsewhere, laterMs) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const held = new Map<unknown, ReturnType<typeof events>>();
  const server = await startScripted({
    answer({ message }, response) {
      if (message.method === 'tools/call') held.set(message.id, events(response, ': begun\n\n'));
    },
  });
  const world = await startWorld({ url: server.url });
  const here = await world.gateway();
  const noting = await world.gateway();
  const id = await open(here.url, 'alice');
  await post(elsewhere ? noting.url : here.url, 'alice', id, CANCEL);
  world.clock.ahead += laterMs;
  const other = { ...CALL, id: 8 };
  const [answer, cancelled] = [post(here.url, 'alice', id, CALL), post(here.url, 'alice', id, other)];
  while (held.size < 2) await new Promise((resolve) => setImmediate(resolve));
  await post(noting.url, 'alice', id, CANCEL.replace('7', '8'));
  // The same look at the notes finds both, and only the later one counts.
  vi.advanceTimersByTime(1_000);
  expect((await cancelled).status).toBe(202);
  held.get(7)!.end('data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n');
  expect(await (await answer).json()).toMatchObject({ id: 7, result: {} });
  expect(await world.charged('alice')).toBe(PRICE);
  expect(await world.faults()).toEqual([]);
});

test("another session's request with the same id goes on", async () => {
  const server = await startScripted({
    answer({ message, session }, response) {
      if (message.method === 'tools/call') held.set(session!, events(response, ': begun\n\n'));
    },
  });
  const held = new Map<string, ReturnType<typeof events>>();
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const [alices, bobs] = [await open(gateway.url, 'alice'), await open(gateway.url, 'bob')];
  const [alice, bob] = [post(gateway.url, 'alice', alices, CALL), post(gateway.url, 'bob', bobs, CALL)];
  while (held.size < 2) await new Promise((resolve) => setImmediate(resolve));
  await post(gateway.url, 'alice', alices, CANCEL);
  expect((await alice).status).toBe(202);
  held.get('upstream-3')!.end('data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n');
  expect(await (await bob).json()).toMatchObject({ id: 7, result: {} });
  expect([await world.charged('alice'), await world.charged('bob')]).toEqual([0n, PRICE]);
  expect(await world.faults()).toEqual([]);
});

test('calls run side by side though their ids differ beyond 2^53 only, and each is cancelled alone', async () => {
  const ids = ['1795423000000000001', '1795423000000000002', '1795423000000000003'];
  const held = new Map<unknown, ReturnType<typeof events>>();
  const told: unknown[] = [];
  const server = await startScripted({
    // Its numbers are rounded, as those of most servers.
    answer({ message }, response) {
      if (message.method === 'tools/call') held.set(message.id, events(response, ': begun\n\n'));
      if (message.method === 'notifications/cancelled') told.push(message.params!['requestId']);
    },
  });
  const world = await startWorld({ url: server.url, cancelGraceMs: 0 });
  const gateway = await world.gateway();
  const session = await open(gateway.url, 'alice');
  const withId = (message: object | string, id: string) =>
    (typeof message === 'string' ? message : JSON.stringify(message)).replace(/(d":)7/, `$1${id}`);
  const answers = ids.map((id) => post(gateway.url, 'alice', session, withId(CALL, id)));
  while (held.size < ids.length) await new Promise((resolve) => setImmediate(resolve));
  expect((await post(gateway.url, 'alice', session, withId(CALL, ids[0]!))).status).toBe(200);
  await post(gateway.url, 'alice', session, withId(CANCEL, ids[1]!));
  expect((await answers[1]!).status).toBe(202);
  for (const [id, response] of held)
    response.end(`data: {"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[],"of":"${String(id)}"}}\n\n`);
  for (const index of [0, 2])
    expect(await (await answers[index]!).text()).toContain(
      `{"jsonrpc":"2.0","id":${ids[index]},"result":{"content":[],"of":"${ids[index]}"`,
    );
  expect(told).toEqual([ids[1]]);
  expect(gateway.endings.toSorted()).toEqual([
    't: cancelled, 0',
    't: complete, 1000',
    't: complete, 1000',
    't: status 200, 0',
  ]);
  expect(await world.faults()).toEqual([]);
});
