import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { spineOfFile } from '../support/of-file.ts';

// What is no HTTP is answered once, and its connection is gone, whether or not the other side closes it.

const spine = spineOfFile();

test('a client that sends garbage and keeps its side open keeps no connection', async () => {
  const answers = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const socket = connect({ port: Number(new URL(spine.origin).port), host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', () => {});
      socket.write('GARBAGE\r\n\r\n');
      let text = '';
      for await (const part of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)
        text += part.toString();
      return { socket, text };
    }),
  );
  for (const { text } of answers) expect(text).toMatch(/^HTTP\/1\.1 400 /);
  const connections = () =>
    new Promise<number>((resolve, reject) =>
      spine.app.server.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
  await expect.poll(connections).toBe(0);
  for (const { socket } of answers) socket.destroy();
});
