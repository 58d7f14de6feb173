import { expect, onTestFinished, test } from 'vitest';
import { startSpine, UNHURRIED } from '../support/spine.ts';
import { tinyMp4 } from './support/tiny-mp4.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';

// Sixteen clients fetch two videos at once, whole and in parts: each gets every byte of its own, however slowly others
// read.

const KIB = 1024;
const CLIENTS = 16;

test('each of many downloads at once has all bytes of its file', async () => {
  const provider = await startVideoProvider();
  onTestFinished(() => provider.close());
  const toml = `${UNHURRIED}[media]\nfree_bytes_min = 0\n${videoBlock({ url: provider.url })}`;
  const spine = await startSpine({ toml });
  onTestFinished(() => spine.stop());
  // Bytes that tell their place, and which file they are of.
  const files = [3, 5].map((step) => {
    const film = tinyMp4(4, 1_500 * KIB);
    const from = film.indexOf('mdat') + 4;
    for (let at = from; at < from + 1_500 * KIB; at += 1) film[at] = (at * step + (at >> 8)) & 0xff;
    return film;
  });
  const ids: string[] = [];
  for (const file of files) {
    provider.begin(() => ({ file }));
    const response = await spine.post('/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s' });
    const { id } = (await response.json()) as Queued;
    await spine.post('/video/retrieve', { task_id: id, wait_for_final: true }).then((reply) => reply.body?.cancel());
    ids.push(id);
  }

  const download = async (index: number) => {
    const file = files[index % 2]!;
    const start = index < CLIENTS / 2 ? 0 : index * 40_009;
    const headers = { authorization: `Bearer ${spine.key}`, ...(start === 0 ? {} : { range: `bytes=${start}-` }) };
    const response = await fetch(`${spine.url}/videos/${ids[index % 2]}/content`, { headers });
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.body!) {
      chunks.push(chunk as Uint8Array);
      // Some read slower than the others: their buffers are used again only when they are empty.
      if (index % 3 === 0) await new Promise(setImmediate);
    }
    expect(Buffer.concat(chunks).equals(file.subarray(start)), `download ${index}`).toBe(true);
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => download(index)));
  expect(await spine.faults()).toEqual([]);
});
