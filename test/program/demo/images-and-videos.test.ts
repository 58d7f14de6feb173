import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPng } from '../../../src/program/demo/png.ts';
import { type DemoProvider, runDemoProvider } from '../../../src/program/demo/provider.ts';

let provider: DemoProvider;
let now = 1_000_000;
beforeAll(async () => {
  provider = await runDemoProvider({ now: () => now });
});
afterAll(() => provider.close());

const post = async (path: string, body: object) =>
  (await fetch(`${provider.url}${path}`, { method: 'POST', body: JSON.stringify(body) })).json();

async function imagesOf(fields: object): Promise<readonly { readonly seed: number; readonly file: Buffer }[]> {
  const { data } = (await post('/images/generations', { prompt: 'A tollgate', ...fields })) as {
    readonly data: readonly { readonly b64_json: string; readonly seed: number }[];
  };
  return data.map(({ b64_json: text, seed }) => ({ seed, file: Buffer.from(text, 'base64') }));
}

test.each(['96x64', '1024x1024', '31x4096'])('an image has the size that is asked for: %s', async (size) => {
  const [image] = await imagesOf({ size });
  const { width, height, pixels } = readPng(image!.file, 'image');
  expect(`${width}x${height}`).toBe(size);
  expect(new Set(new Uint32Array(pixels.buffer)).size).toBeGreaterThan(10);
});

test('the images of one answer differ, and the same seed gives the same image again', async () => {
  const images = await imagesOf({ size: '64x64', n: 4, seed: 7 });
  expect(images.map(({ seed }) => seed)).toEqual([7, 8, 9, 10]);
  expect(new Set(images.map(({ file }) => file.toString('base64'))).size).toBe(4);
  expect(await imagesOf({ size: '64x64', seed: 9 })).toEqual([images[2]]);
});

/** What the headers of an MP4 file say. The pictures themselves are in `avc1`, with their own size. */
function headersOf(film: Buffer) {
  const at = (box: string, offset: number) => film.readUInt32BE(film.indexOf(box) + offset);
  const [movie, media] = ['mvhd', 'mdhd'].map((box) => at(box, 20) / at(box, 16));
  const shown = `${at('tkhd', 80) / 0x10000}x${at('tkhd', 84) / 0x10000}`;
  const coded = film.readUInt32BE(film.indexOf('avc1', film.indexOf('stsd')) + 28);
  return { movie, media, shown, coded: `${coded >>> 16}x${coded & 0xffff}` };
}

test.each([
  ...['854x480', '480x854', '480x480', '1280x720', '720x1280', '720x720'].map((size) => [size, size] as const),
  // The pictures of the nearest film, which players show in the size that was asked for.
  ['640x360', '854x480'],
  ['1920x1080', '1280x720'],
  ['64x128', '480x854'],
] as const)('a video of %s has pictures of %s and its length', async (size, coded) => {
  for (const seconds of [1, 4, 7]) {
    const { id } = (await post('/videos', { prompt: 'A tollgate', seconds: String(seconds), size })) as {
      readonly id: string;
    };
    now += 2_000;
    expect(await (await fetch(`${provider.url}/videos/${id}`)).json()).toMatchObject({ status: 'completed', size });
    const film = Buffer.from(await (await fetch(`${provider.url}/videos/${id}/content`)).arrayBuffer());
    expect(headersOf(film)).toEqual({ movie: seconds, media: seconds, shown: size, coded });
    expect(film.readUInt32BE(0) + film.readUInt32BE(film.readUInt32BE(0))).toBe(film.indexOf('mdat') - 4);
    expect(film.indexOf('mdat') - 4 + film.readUInt32BE(film.indexOf('mdat') - 4)).toBe(film.length);
  }
});
