import { expect, onTestFinished, test } from 'vitest';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';
import { events, startScripted } from '../sessions/scripted-server.ts';
import { listenModern } from './clients.ts';

// What a legacy server tells outside of replies, while a modern client listens: the server breaks off, is away,
// loses its sessions, and comes back.

/** `breaks`: with a word first, of how soon it is to be opened again. `drops`: without any. */
type Stream = 'opens' | 'breaks' | 'drops' | 'busy';
const CHANGED = 'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n';

/** A server that does with each stream what comes next in the list, and at its end opens all. */
async function startWorld(...streams: Stream[]) {
  let cut = () => {};
  const server = await startScripted({
    answer({ http }, response) {
      if (http !== 'GET') return undefined;
      const how = streams.shift() ?? 'opens';
      if (how === 'busy') return response.writeHead(503).end();
      if (how === 'drops') return response.destroy();
      events(response, 'retry: 10\ndata:\n\n');
      if (how === 'breaks') return void setImmediate(() => response.destroy());
      cut = () => response.destroy();
      return response.write(CHANGED);
    },
  });
  const spine = await startSpine({ toml: UNHURRIED + toolToml({ name: 'tools', url: server.url }) });
  onTestFinished(async () => {
    expect(await spine.faults()).toEqual([]);
    await spine.stop();
  });
  return { server, streams, cut: () => cut(), listen: () => listenModern(spine, 'tools') };
}

test('a stream that breaks, and a server that is too busy to open it, are tried again', async () => {
  const { listen } = await startWorld('breaks', 'busy', 'drops', 'busy');
  const stream = await listen();
  await stream.has('list_changed');
  stream.leave();
});

test('one that was away for too long ends the stream, and is heard when the client asks again', async () => {
  const { listen, streams } = await startWorld('breaks', ...Array<Stream>(5).fill('drops'));
  const first = await listen();
  expect(await first.over).toMatchObject({ how: 'whole', text: expect.stringContaining('"result"') });
  expect(streams).toEqual([]);
  const second = await listen();
  await second.has('list_changed');
  second.leave();
});

test('one that lost its sessions ends the stream, and is heard in another session when the client asks again', async () => {
  const { server, listen, cut } = await startWorld();
  const first = await listen();
  await first.has('list_changed');
  server.open.clear();
  cut();
  expect(await first.over).toMatchObject({ how: 'whole', text: expect.stringContaining('"result"') });
  const second = await listen();
  await second.has('list_changed');
  expect(server.open.size).toBe(1);
  second.leave();
});
