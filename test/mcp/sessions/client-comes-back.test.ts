import { expect, test } from 'vitest';
import { events, startScripted } from './scripted-server.ts';
import { open, post, PRICE, startWorld } from './session-world.ts';

const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 't', arguments: {} } };
const note = (n: number) =>
  `id: ${n}\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${n}}}\n\n`;
const PRIMING = 'id: 0\nretry: 10\ndata: \n\n';

/** A server whose tool says 1 and 2, waits, says 3, waits, and answers. */
async function world(withIds = true) {
  const [middle, last] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const server = await startScripted({
    async answer({ message, http }, response) {
      if (http === 'GET')
        return void events(response).write(
          'id: 9\ndata: {"jsonrpc":"2.0","id":7,"result":{"content":[],"unpaid":true}}\n\n' + note(10),
        );
      if (message.method !== 'tools/call') return;
      const text = withIds ? note : (n: number) => note(n).replace(/^id.*\n/, '');
      events(response, ...(withIds ? [PRIMING] : []), text(1), text(2));
      await middle.promise;
      response.write(text(3));
      await last.promise;
      response.end(
        `${withIds ? 'id: 4\n' : ''}data: {"jsonrpc":"2.0","id":7,"result":{"content":[],"whole":true}}\n\n`,
      );
    },
  });
  const started = await startWorld({ url: server.url, drainMs: 0 });
  const gateway = await started.gateway();
  const id = await open(gateway.url, 'alice');
  const listen = (lastEventId: string, account = 'alice') =>
    fetch(gateway.url, {
      headers: {
        authorization: `Bearer ${account}`,
        'mcp-session-id': id,
        accept: 'text/event-stream',
        'last-event-id': lastEventId,
      },
    });
  /** Makes the call and reads until it has seen `until`. Then the connection breaks. */
  const callUntil = async (until: string) => {
    const connection = new AbortController();
    const reply = await fetch(gateway.url, {
      method: 'POST',
      headers: {
        authorization: 'Bearer alice',
        'mcp-session-id': id,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(CALL),
      signal: connection.signal,
    });
    const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ''; !text.includes(until);) text += (await reader.read()).value;
    connection.abort();
    await reader.closed.catch(() => {});
  };
  return { server, world: started, gateway, middle, last, listen, callUntil, session: id };
}

test('a client whose connection broke gets what it missed and the response, and pays once', async () => {
  const { world: money, gateway, server, middle, last, listen, callUntil } = await world();
  await callUntil('"data":1');
  const reply = await listen('1');
  expect(reply.headers.get('content-type')).toBe('text/event-stream');
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('"data":2')) text += (await reader.read()).value;
  middle.resolve();
  while (!text.includes('"data":3')) text += (await reader.read()).value;
  last.resolve();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += value;
  }
  expect(text).toContain(
    `: resumed\n\n${note(2)}${note(3)}event: message\nid: 4\ndata: {"jsonrpc":"2.0","id":7,"result":{"content":[],"whole":true,"_meta":`,
  );
  expect(server.asked.filter(({ http }) => http === 'GET')).toHaveLength(0);
  expect(gateway.endings).toEqual(['t: complete, 1000']);
  expect(await money.charged('alice')).toBe(PRICE);
  expect(await money.faults()).toEqual([]);
});

test('one that comes back after the end gets the rest, for a while', async () => {
  const { world: money, gateway, middle, last, listen, callUntil } = await world();
  await callUntil('"data":2');
  middle.resolve();
  last.resolve();
  while (gateway.inFlight() > 0) await new Promise((resolve) => setImmediate(resolve));
  expect(await (await listen('3')).text()).toMatch(/^: resumed\n\nevent: message\nid: 4\ndata: .*whole/);
  expect(await (await listen('2')).text()).toContain(note(3));
  money.clock.ahead += 60_000;
  gateway.replays.sweep();
  expect(gateway.replays.bytes).toBe(0);
  expect(await money.charged('alice')).toBe(PRICE);
});

test('nobody else can come back for it', async () => {
  const { gateway, middle, last, listen, callUntil } = await world();
  await callUntil('"data":2');
  expect((await listen('1', 'bob')).status).toBe(404);
  const other = await open(gateway.url, 'alice');
  const reply = await fetch(gateway.url, {
    headers: {
      authorization: 'Bearer alice',
      'mcp-session-id': other,
      accept: 'text/event-stream',
      'last-event-id': '1',
    },
  });
  const { value } = await reply.body!.getReader().read();
  expect(Buffer.from(value ?? []).toString()).toMatch(/^: listening/);
  middle.resolve();
  last.resolve();
});

test('a response that a server sends again is not given out without being paid for', async () => {
  const { world: money, gateway, listen } = await world();
  const reply = await listen('an id that this gateway does not know');
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('"data":10')) text += (await reader.read()).value;
  expect(text).not.toContain('unpaid');
  await reader.cancel();
  expect(gateway.endings).toEqual([]);
  expect(await money.faults()).toEqual([]);
});

test('a client that leaves a stream that cannot be gone on with ends the call', async () => {
  const { world: money, gateway, callUntil } = await world(false);
  await callUntil('"data":2');
  while (gateway.inFlight() > 0) await new Promise((resolve) => setImmediate(resolve));
  expect(gateway.endings).toEqual(['t: cancelled, 0']);
  expect(await money.charged('alice')).toBe(0n);
  expect(await money.faults()).toEqual([]);
});

test('a request whose id is on its way already is refused', async () => {
  const { world: money, gateway, middle, last, session } = await world();
  const first = await post(gateway.url, 'alice', session, CALL);
  const second = await post(gateway.url, 'alice', session, CALL);
  expect([second.status, await second.json()]).toMatchObject([200, { id: 7, error: { code: -32_600 } }]);
  middle.resolve();
  last.resolve();
  expect(await first.text()).toContain('whole');
  expect(await money.charged('alice')).toBe(PRICE);
  expect(await money.faults()).toEqual([]);
});
