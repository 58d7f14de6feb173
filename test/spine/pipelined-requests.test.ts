import { expect, test } from 'vitest';
import { openSocket } from '../support/raw-http.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

/**
 * Sends requests without waiting for answers. Gives the statuses of those that came before the server closed the
 * connection, or of the last one.
 */
async function statusesOf(requests: number): Promise<readonly number[]> {
  const socket = await openSocket(spine.origin);
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const body = JSON.stringify(ask('hello'));
  const request = (connection: string) =>
    `POST /api/v1/chat/completions HTTP/1.1\r\nhost: gate\r\nconnection: ${connection}\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  socket.write(request('keep-alive').repeat(requests - 1) + request('close'));
  await closed;
  return [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
}

test('some requests may be sent ahead of the answers to others', async () => {
  expect(await statusesOf(20)).toEqual(Array(20).fill(200));
});

test('one that is sent ahead of too many is refused, and its connection closed', async () => {
  expect(await statusesOf(200)).toEqual([...Array(32).fill(200), 429]);
});

test('a connection that is used for long takes as many again', async () => {
  const responses = await Promise.all(Array.from({ length: 4 }, () => statusesOf(32)));
  expect(new Set(responses.flat())).toEqual(new Set([200]));
});
