import { expect, test } from 'vitest';
import { openSocket, readAnswer, sendRaw } from '../support/raw-http.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

/** A chat request whose body has so many bytes, in chunks of this size. */
const inChunks = (bytes: number, size: number): Buffer => {
  const empty = JSON.stringify(ask(''));
  const body = empty.replace('"content":""', `"content":"${'x'.repeat(bytes - empty.length)}"`);
  const parts = [
    `POST /api/v1/chat/completions HTTP/1.1\r\nhost: gate\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
  ];
  for (let at = 0; at < body.length; at += size) {
    const part = body.slice(at, at + size);
    parts.push(`${part.length.toString(16)}\r\n${part}\r\n`);
  }
  return Buffer.from(`${parts.join('')}0\r\n\r\n`);
};

test.each([
  [2_000, 1],
  [300_000, 100],
  [200_000, 70_000],
  [131_072, 65_536],
])('a body of %i bytes in chunks of %i is read as it was sent', async (bytes, size) => {
  expect((await sendRaw(spine.origin, inChunks(bytes, size))).status).toBe(200);
  const { messages } = spine.provider.log.at(-1)!.body as { messages: readonly { content: string }[] };
  expect(messages[0]!.content).toMatch(/^x+$/);
  expect(messages[0]!.content.length).toBe(bytes - JSON.stringify(ask('')).length);
});

test('a large body in chunks of one byte is refused with what would be right', async () => {
  const { status, body } = await sendRaw(spine.origin, inChunks(100_000, 1));
  expect(status).toBe(400);
  expect(JSON.parse(body)).toMatchObject({
    error: { type: 'invalid_request', message: expect.stringContaining('chunks of less than 64 bytes') },
  });
});

test('a body that is larger than is taken is refused however it comes', async () => {
  expect((await sendRaw(spine.origin, inChunks(11 * 1024 * 1024, 60_000))).status).toBe(413);
});

const head = (path: string, more: string) =>
  `POST ${path} HTTP/1.1\r\nhost: gate\r\n${more}transfer-encoding: chunked\r\n\r\n`;
const BYTES = Buffer.from('1\r\nx\r\n'.repeat(10_000));

test('an uploaded file in chunks of one byte is refused with what would be right', async () => {
  const form = '--zz\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n';
  const begun = `${head('/api/v1/files', `authorization: Bearer ${spine.key}\r\ncontent-type: multipart/form-data; boundary=zz\r\n`)}${form.length.toString(16)}\r\n${form}\r\n`;
  const { status, body } = await sendRaw(spine.origin, Buffer.concat([Buffer.from(begun), BYTES]));
  expect(status).toBe(400);
  expect(JSON.parse(body)).toMatchObject({
    error: { type: 'invalid_request', message: expect.stringContaining('chunks of less than 64 bytes') },
  });
});

/** Of the rest of a body that was refused, the gateway reads 32 MiB if its chunks are large. */
const FAR_LESS = 16 * 1024 * 1024;
test.each([
  ['a path that does not exist', '/api/v1/nowhere', 404, '127.0.0.2'],
  ['no key', '/api/v1/chat/completions', 401, '127.0.0.3'],
  ['no key for an upload', '/api/v1/files', 401, '127.0.0.4'],
  ['no key for an agent', '/a2a/test/agent', 401, '127.0.0.5'],
])('who goes on to send chunks of one byte after a refusal is disconnected: %s', async (_name, path, refused, from) => {
  const socket = await openSocket(spine.origin, from);
  const answer = readAnswer(socket);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(head(path, 'content-type: application/json\r\n'));
  expect((await answer).status).toBe(refused);
  const more = () => {
    while (!socket.destroyed && socket.write(BYTES));
  };
  socket.on('drain', more);
  more();
  await closed;
  expect(socket.bytesWritten).toBeLessThan(FAR_LESS);
});
