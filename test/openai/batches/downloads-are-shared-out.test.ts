import { expect, test } from 'vitest';
import { UNHURRIED } from '../../support/spine.ts';
import { openSocket } from '../../support/raw-http.ts';
import { clientAt, upload } from './support/batch-client.ts';
import { spineOfFile } from '../../support/of-file.ts';

// A download has a piece of its file in memory, for as long as its client takes to read it.

const BYTES = 12 * 1024 * 1024;
const ACCOUNT_MAX = 8;
const spine = spineOfFile(() => ({ toml: UNHURRIED }));

/** Asks for a file, and reads nothing of the answer after its head. */
async function read(file: string, key: string) {
  const socket = await openSocket(spine.origin);
  const head = Promise.withResolvers<string>();
  socket.once('data', (bytes: Buffer) => {
    socket.pause();
    head.resolve(bytes.toString('latin1').split('\r\n')[0]!);
  });
  socket.write(`GET /v1/files/${file}/content HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`);
  return { head: head.promise, leave: () => socket.destroy() };
}

test('slow readers have a few places, which they give back, and another account reads at once', async () => {
  const line = `${JSON.stringify({ text: 'x'.repeat(1_000) })}\n`;
  const { id: file } = await upload(clientAt(`${spine.origin}/v1`, spine.key), line.repeat(BYTES / line.length));
  const slow = await Promise.all(Array.from({ length: ACCOUNT_MAX }, () => read(file, spine.key)));
  for (const { head } of slow) expect(await head).toContain('200');
  const [next, later] = [await read(file, spine.key), await read(file, spine.key)];
  const other = await spine.tenant('other', '1');
  const client = clientAt(`${spine.origin}/v1`, other.key);
  const own = await upload(client, line);
  expect(await (await client.files.content(own.id)).text()).toBe(line);
  slow[0]!.leave();
  // Nobody else leaves.
  expect((await Promise.all([next.head, later.head])).toSorted()).toEqual([
    expect.stringContaining('200'),
    expect.stringContaining('429'),
  ]);
  for (const { leave } of [...slow, next, later]) leave();
});
