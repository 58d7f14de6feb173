import { expect, test } from 'vitest';
import { openSocket, readAnswer } from '../support/raw-http.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

const GREEDY = '127.0.0.2';
const PATIENT = '127.0.0.3';
/** As many small chunks as one body may have in any case. */
const SOME = 4_000;
const head = (path: string) =>
  `POST ${path} HTTP/1.1\r\nhost: gate\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\n`;

/** The status of a request in so many chunks of one byte, on a connection of its own; null if that was closed. */
async function inSmallChunks(address: string, chunks: number): Promise<number | null> {
  const socket = await openSocket(spine.origin, address);
  const answer = readAnswer(socket);
  socket.write(`${head('/nowhere')}transfer-encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(chunks)}0\r\n\r\n`);
  const { status } = await answer.catch(() => ({ status: null }));
  socket.destroy();
  return status;
}

test('a network that sends small chunks on one connection after the other is refused, and no other network', async () => {
  const kept = await openSocket(spine.origin, GREEDY);
  for (let sent = 0; sent < 10 * SOME; sent += SOME) expect(await inSmallChunks(GREEDY, SOME)).toBe(404);
  // More than comes back meanwhile, on any machine.
  const flood = () => Promise.all(Array.from({ length: 20 }, () => inSmallChunks(GREEDY, 3 * SOME)));
  while (!(await flood()).includes(429));

  expect(await inSmallChunks(PATIENT, SOME)).toBe(404);
  // What has no small chunks goes on, on a connection that the network has already.
  const body = JSON.stringify(ask('hello'));
  const answer = readAnswer(kept);
  kept.write(`${head('/api/v1/chat/completions')}content-length: ${body.length}\r\n\r\n${body}`);
  expect((await answer).status).toBe(200);
  kept.destroy();
});
