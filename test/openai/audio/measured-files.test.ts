import { describe, expect, test } from 'vitest';
import { measureAudio } from '../../../src/openai/audio/measure/measure-audio.ts';
import {
  AAC_FRAME_S,
  adtsFile,
  m4aFile,
  m4aWith,
  mkvFile,
  mp3File,
  MP3_FRAME_S,
  mp3Within,
  opusFile,
  pcmWithin,
  SLOW_MP3_FRAME_S,
  slowMp3Frames,
  wavFile,
} from './support/audio-files.ts';

// The sound in a file is measured by its packets, and a header that says something else changes nothing.

const measured = (file: Buffer) => measureAudio(file, 'someone');
const near = (seconds: number) => expect.closeTo(seconds, 2);

describe('honest files', () => {
  test.each<[string, () => Buffer | Promise<Buffer>, number]>([
    ['wav', () => wavFile(8.5), 8.5],
    ['mp3', () => mp3File(1000), 1000 * MP3_FRAME_S],
    ['ogg', () => opusFile('ogg', 3000), 60],
    ['webm', () => opusFile('webm', 3000), 60],
    ['m4a', () => m4aFile(500), 500 * AAC_FRAME_S],
    ['webm', () => mkvFile(500), 500 * AAC_FRAME_S],
    ['webm', () => mp3Within('mkv', 500, mp3File(1)), 500 * MP3_FRAME_S],
    ['m4a', () => mp3Within('mp4', 500, mp3File(1)), 500 * MP3_FRAME_S],
    ['m4a', () => pcmWithin('mp4', 60, 1), 60],
    ['mp3', () => slowMp3Frames(1000), 1000 * SLOW_MP3_FRAME_S],
    // 16,000 Hz.
    ['aac', () => adtsFile(Array.from({ length: 500 }, () => 8)), 500 * AAC_FRAME_S],
  ])('%s', async (format, make, seconds) => {
    const found = await measured(await make());
    const all = { seconds: near(seconds), secondsHeard: near(seconds), secondsMax: near(seconds) };
    expect(found).toEqual({ format, ...all });
  });

  test('what a browser records has no length in its header', async () => {
    expect(await measured(await opusFile('webm', 3000, { live: true }))).toMatchObject({ seconds: near(60) });
  });
});

describe('files that lie', () => {
  test.each([1_000, 0, 0xffffffff])('a WAV whose header says that it has %i bytes', async (dataSize) => {
    const { seconds, secondsMax } = await measured(wavFile(60, { dataSize }));
    // A small lie is within what headers and tags may have.
    expect(seconds).toBeGreaterThan(57.5);
    expect(secondsMax).toBe(seconds);
    expect(seconds).toBeLessThan(60.01);
  });

  test.each([1, 4_000_000_000])('an MP3 whose Xing header says that it has %i frames', async (xing) => {
    expect(await measured(mp3File(2000, { xing }))).toMatchObject({ seconds: near(2000 * MP3_FRAME_S) });
  });

  test('an MP3 whose frames look like headers is taken for sound at the lowest bitrate', async () => {
    const file = mp3File(2000, { disguised: true });
    const { seconds, secondsHeard, secondsMax } = await measured(file);
    expect(seconds).toBeLessThan(1);
    expect(secondsHeard).toBe(secondsMax);
    expect(secondsMax).toBeGreaterThan(2000 * MP3_FRAME_S);
  });

  test('an M4A whose tables say that a packet takes a thousandth', async () => {
    const { seconds } = await measured(await m4aFile(500, AAC_FRAME_S / 1000));
    expect(seconds).toEqual(near(500 * AAC_FRAME_S));
  });

  test('a WebM whose timestamps say that a packet takes a millisecond', async () => {
    const { seconds } = await measured(await opusFile('webm', 3000, { shownMs: 1 }));
    expect(seconds).toEqual(near(60));
  });

  test('a WAV whose header says that a sample has 32,000 bytes', async () => {
    const { seconds } = await measured(wavFile(60, { blockAlign: 32_000 }));
    expect(seconds).toBeGreaterThan(59);
  });

  test.each(['mp4', 'mkv'] as const)('sound without compression in %s, whose timestamps say less', async (kind) => {
    const { seconds } = await measured(await pcmWithin(kind, 60, 0.001));
    expect(seconds).toEqual(near(60));
  });

  test('a Matroska whose track says another frequency than its codec', async () => {
    const { seconds } = await measured(await mkvFile(500, 1e9, 0.001));
    expect(seconds).toEqual(near(500 * AAC_FRAME_S));
  });

  test.each([
    // Object type 5, 8,000 Hz, one channel, extension of 96,000 Hz, object type 2.
    ['at its beginning', [0x2d, 0x88, 0x08, 0x80]],
    // Object type 2, 8,000 Hz, one channel, and behind the sync word 0x2b7 object type 5 with 96,000 Hz.
    ['at its end', [0x15, 0x88, 0x56, 0xe5, 0x80]],
  ])('an M4A whose configuration names a high frequency of the extension %s', async (_where, config) => {
    const { seconds } = await measured(await m4aWith(500, config, 0.001));
    expect(seconds).toBeGreaterThan((500 * 1024) / 8_001);
  });

  test.each(['mp4', 'mkv'] as const)('MP3 in %s with many frames in a packet', async (kind) => {
    const file = await mp3Within(kind, 10, slowMp3Frames(1_000), { hz: 48_000, shownS: 0.001 });
    const { seconds } = await measured(file);
    expect(seconds).toEqual(near(10_000 * SLOW_MP3_FRAME_S));
  });

  test('AAC whose first frame has another frequency than the rest', async () => {
    // 96,000 Hz, then 8,000 Hz.
    const { seconds } = await measured(adtsFile([0, 0, 0, ...Array.from({ length: 500 }, () => 11)]));
    expect(seconds).toBeGreaterThan((500 * 1024) / 8_001);
  });

  test('a second stream behind the first one of an Ogg file', async () => {
    const one = await opusFile('ogg', 10);
    const { secondsHeard } = await measured(Buffer.concat([one, await opusFile('ogg', 6000)]));
    expect(secondsHeard).toBeGreaterThan(120);
  });

  test('sound behind the end of an M4A', async () => {
    const { seconds, secondsHeard, secondsMax } = await measured(Buffer.concat([await m4aFile(10), mp3File(2000)]));
    expect(secondsMax).toBeGreaterThan(2000 * MP3_FRAME_S);
    // Decoders go by its tables.
    expect(secondsHeard).toBe(seconds);
  });

  test('a picture before the sound of an MP3 raises the most, and nothing that is heard', async () => {
    const picture = Buffer.alloc(500_000);
    const tag = Buffer.from([
      0x49,
      0x44,
      0x33,
      4,
      0,
      0,
      ...[21, 14, 7, 0].map((bits) => (picture.length >> bits) & 127),
    ]);
    const found = await measured(Buffer.concat([tag, picture, mp3File(1000)]));
    expect(found).toMatchObject({ seconds: near(1000 * MP3_FRAME_S), secondsHeard: found.seconds });
    expect(found.secondsMax).toBeGreaterThan(500);
  });
});

test('tables with four billion packets of no bytes are not followed to their end', async () => {
  const file = await m4aFile(100);
  // In `stts` the number of packets of a length, in `stsz` their size and their number, in `stsc` those of a chunk.
  file.writeUInt32BE(0xffffffff, file.indexOf('stts') + 12);
  file.writeUInt32BE(1, file.indexOf('stsz') + 8);
  file.writeUInt32BE(0xffffffff, file.indexOf('stsz') + 12);
  file.writeUInt32BE(0xffffffff, file.indexOf('stsc') + 16);
  await expect(measured(file)).rejects.toMatchObject({
    code: 'invalid_request',
    cause: { message: 'it has more packets than sound has' },
  });
});

describe('no sound', () => {
  test.each<[string, Buffer]>([
    ['text', Buffer.from('What is a tollgate?'.repeat(1000))],
    ['an empty WAV', wavFile(0)],
    ['a PNG', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')],
    ['half a header', wavFile(1).subarray(0, 20)],
    ['a playlist of other files', Buffer.from('#EXTM3U\n#EXTINF:10,\nhttps://example.com/a.mp3\n')],
    ['zeros', Buffer.alloc(100_000)],
  ])('%s is refused with the formats that are taken', async (_what, file) => {
    await expect(measured(file)).rejects.toMatchObject({
      code: 'invalid_request',
      param: 'file',
      message: expect.stringMatching(/^file .*mp3, mp4, m4a, wav, webm, ogg, flac or aac$/),
    });
  });
});
