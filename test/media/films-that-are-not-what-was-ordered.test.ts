import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMp4Scan } from '../../src/media/video/mp4.ts';
import { billedSeconds } from '../../src/media/video/video-task.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { box, fragmentedMp4, tinyMp4 } from './support/tiny-mp4.ts';
import { type Queued, startVideoProvider, videoBlock, type VideoProvider } from './support/video-provider.ts';

// A file that is visibly not the film that was ordered is priced as what came, and its provider is flagged.

function scan(file: Buffer, chunk = file.length) {
  const one = createMp4Scan();
  for (let at = 0; at < file.length; at += chunk) one.push(file.subarray(at, at + chunk));
  return one.end();
}

test.each([
  ['every sample', { perSample: true }],
  ['the fragment', { inHeader: true }],
  ['the movie box, for all fragments', {}],
  ['a movie box that has the first part', { perSample: true, before: 1 }],
])('the playing time of a fragmented file is read from %s', (_from, how) => {
  const file = fragmentedMp4({ fragments: 4, samples: 24, ...how });
  expect(scan(file).seconds).toBeCloseTo(4);
  expect(scan(file, 1)).toEqual(scan(file));
});

test('a fragmented file with strange boxes is read as far as it goes', () => {
  const file = fragmentedMp4({ fragments: 4, samples: 24, perSample: true });
  for (let at = 60; at < file.length; at += 7) {
    const broken = Buffer.from(file);
    broken[at] = 0xff;
    try {
      scan(broken);
    } catch (error) {
      expect((error as Error).name).toBe('NotMp4');
    }
  }
});

const EMPTY = Buffer.concat([box('ftyp', Buffer.from('isom\0\0\0\0isom')), box('moov'), box('mdat')]);

test.each([
  ['without a brand', Buffer.concat([box('ftyp', Buffer.from('\0\0\0\0\0\0\0\0isom')), box('moov'), box('mdat')])],
  ['without an ftyp', Buffer.concat([box('moov'), box('mdat')])],
])('a file %s does not begin like a film', (_what, file) => {
  expect(() => scan(file)).toThrow('does not begin like an MP4 file');
});

test.each([
  ['of the operator', undefined, [4, 4, 0, 2]],
  ['who dialled in', true as const, [4, 0, 0, 2]],
])('the seconds of a provider %s', (_who, dialledIn, seconds) => {
  const order = { seconds: 4, ...(dialledIn && { dialledIn }) };
  const billed = [tinyMp4(4), tinyMp4(null), EMPTY, tinyMp4(4, 32)].map((file) =>
    billedSeconds(order, JSON.stringify(scan(file))),
  );
  expect(billed.map((one) => one.seconds)).toEqual(seconds);
  expect(billed.map(({ inFile }) => inFile)).toEqual([4, 0, 0, 2]);
  // Files that an earlier version has downloaded.
  expect(billedSeconds(order, '{"seconds":4}')).toEqual({ seconds: 4, inFile: 4 });
});

test.each([
  [10, 10],
  [8, 10],
  [7.9, 8],
  [7.1, 8],
  [7, 7],
])('a film of %d seconds in place of 10 is charged as %d', (plays, seconds) => {
  expect(billedSeconds({ seconds: 10 }, `{"seconds":${plays}}`)).toEqual({ seconds, inFile: seconds });
});

let provider: VideoProvider;
let spine: Spine;
beforeAll(async () => {
  provider = await startVideoProvider();
  spine = await startSpine({ toml: `${UNHURRIED}[media]\nfree_bytes_min = 0\n${videoBlock({ url: provider.url })}` });
});
afterAll(async () => {
  await spine?.stop();
  await provider?.close();
});

test.each([
  ['an MP4 of 36 bytes costs its base price', EMPTY, 50_000n, 0],
  ['a file without a length counts as whole', tinyMp4(null), 450_000n, 0],
  ['a fragmented file costs what it plays', fragmentedMp4({ fragments: 2, samples: 24 }), 250_000n, 2],
  ['a whole fragmented file costs its price', fragmentedMp4({ fragments: 4, samples: 24 }), 450_000n, null],
])('%s', async (_what, file, charged, most) => {
  const before = await spine.balance();
  provider.begin(() => ({ file }));
  const { id } = (await (
    await spine.post('/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s' })
  ).json()) as Queued;
  const answer = await spine.post('/video/retrieve', { task_id: id, wait_for_final: true });
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(file);
  expect(before.available - (await spine.balance()).available).toBe(charged);
  const [, callId] = JSON.parse(Buffer.from(id.split(':')[1]!, 'base64url').toString()) as [string, string];
  expect(await spine.generation(callId)).toMatchObject({
    flags: most === null ? [] : ['usage_implausible'],
    claims: most === null ? [] : [{ meter: 'second', claimed: 4, most }],
  });
  expect(await spine.faults()).toEqual([]);
});
