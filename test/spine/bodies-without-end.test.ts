import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { startSpine } from '../support/spine.ts';

/** What is read before and after a refusal (32 MiB), and what buffers hold. In the 10 s that it may take, more come. */
const BYTES_MAX = 80 * 1024 * 1024;
const CHUNK = `10000\r\n${'x'.repeat(65_536)}\r\n`;

/**
 * Sends a body without end. Resolves when the gateway has closed the connection, with its answer and how many bytes had
 * been sent.
 */
function sendWithoutEnd(
  origin: string,
  key: string,
  lengthLine: string,
): Promise<{ readonly answer: string; readonly bytes: number }> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    let answer = '';
    const push = () => {
      if (!socket.destroyed) socket.write(CHUNK, () => setImmediate(push));
    };
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => (answer += bytes.toString()));
    socket.on('close', () => resolve({ answer, bytes: socket.bytesWritten }));
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${lengthLine}\r\n\r\n`,
    );
    push();
  });
}

test('of a body that goes on after its refusal so many bytes are read, whether it was begun to be read or not', async () => {
  const spine = await startSpine();
  const cases = [
    ['wrong', 'transfer-encoding: chunked', '401'],
    [spine.key, 'content-length: 900000000', '413'],
    [spine.key, 'transfer-encoding: chunked', '413'],
  ] as const;
  for (const [key, lengthLine, status] of cases) {
    const { answer, bytes } = await sendWithoutEnd(spine.origin, key, lengthLine);
    expect(answer).toContain(`HTTP/1.1 ${status}`);
    expect(bytes).toBeLessThan(BYTES_MAX);
  }
  await spine.stop();
});
