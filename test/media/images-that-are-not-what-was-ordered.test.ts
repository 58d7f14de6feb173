import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { isWholeImage } from '../../src/media/image-file.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import {
  type Answering,
  answerWith,
  imageBlock,
  type ImageProvider,
  png,
  pngThatSays,
  startImageProvider,
} from './support/image-provider.ts';

// An image that is much smaller than ordered is priced as what came, and its provider is flagged. An image that is cut
// off is no image.

let provider: ImageProvider;
let spine: Spine;
beforeAll(async () => {
  provider = await startImageProvider();
  const { url } = provider;
  const more = { url, lines: 'supported_params = ["stream", "partial_images"]', params: 'edits = true' };
  spine = await startSpine({
    toml:
      UNHURRIED +
      imageBlock({ ...more, pricing: 'resolutions = { "1K" = 0.04, "2K" = 0.1, "4K" = 0.5 }' }) +
      imageBlock({ ...more, name: 'test/plain' }),
  });
});
afterAll(async () => {
  await spine?.stop();
  await provider?.close();
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const encoded = (image: Buffer) => ({ b64_json: image.toString('base64') });
const painted = (width: number, height: number) => encoded(pngThatSays(width, height));

async function charged(path: string, body: object) {
  const before = await spine.balance();
  const answer = await spine.post(path, { model: 'test/paint', prompt: 'A tollgate', ...body });
  await answer.arrayBuffer();
  const id = answer.headers.get('x-generation-id');
  const { flags, claims } = id === null ? { flags: null, claims: null } : await spine.generation(id);
  const cost = Number(before.available - (await spine.balance()).available);
  return { status: answer.status, cost, flags, claims };
}

const FLAGGED = ['usage_implausible'];
/** The claim of which `usage_implausible` tells: pixels that were ordered and that came. */
const small = (claimed: number, most: number) => [{ meter: 'pixel', claimed, most }];
const K = 1_024 ** 2;

test.each([
  ['4K of half the pixels', { resolution: '4K' }, [[3840, 2160]], 500_000, []],
  ['2K for 4K', { resolution: '4K' }, [[2048, 2048]], 100_000, small(16 * K, 4 * K)],
  ['a size of its own, near 2K, for 4K', { resolution: '4K' }, [[1920, 1920]], 100_000, small(16 * K, 1_920 ** 2)],
  ['1K for 4K', { resolution: '4K' }, [[1024, 1024]], 40_000, small(16 * K, K)],
  ['one pixel for 4K', { resolution: '4K' }, [[1, 1]], 1, small(16 * K, 1)],
  ['a quarter for 1K', { resolution: '1K' }, [[512, 512]], 10_000, small(K, K / 4)],
  [
    'one of two',
    { resolution: '4K', n: 2 },
    [
      [4096, 4096],
      [1024, 1024],
    ],
    540_000,
    small(16 * K, K),
  ],
  ['another shape of the size', { size: '1024x1024' }, [[832, 1216]], 40_000, []],
  [
    'a quarter of the size, without tiers',
    { model: 'test/plain', size: '1024x1024' },
    [[512, 512]],
    10_000,
    small(K, K / 4),
  ],
  ['any size where none was ordered', { model: 'test/plain' }, [[1, 1]], 40_000, []],
])('%s', async (_what, body, sizes, cost, claims) => {
  provider.answer(answerWith(...sizes.map(([width, height]) => painted(width!, height!))));
  const flags = claims.length === 0 ? [] : FLAGGED;
  expect(await charged('/image/generate', body)).toEqual({ status: 200, cost, flags, claims });
});

test('at every door', async () => {
  provider.answer(answerWith(painted(1024, 1024)));
  const least = { status: 200, cost: 40_000, flags: FLAGGED, claims: small(16 * K, K) };
  const size = '4096x4096';
  expect(await charged('/images/generations', { size })).toEqual(least);
  expect(await charged('/image/generate', { size, output_type: 'file' })).toEqual(least);
  const images = [{ b64: png(64, 64).toString('base64') }];
  expect(await charged('/image/edit', { images, resolution: '4K' })).toEqual(least);
  // An edit is as large as its input if nothing else is ordered.
  expect(await charged('/image/edit', { images })).toMatchObject({ cost: 40_000, claims: [] });
  const chat = { model: 'image/test/paint', messages: [{ role: 'user', content: 'A tollgate' }] };
  provider.answer(answerWith(painted(1, 1)));
  expect(await charged('/chat/completions', chat)).toMatchObject({ status: 200, cost: 1 });
});

const streaming =
  (image: object): Answering =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const type = 'image_generation.completed';
    response.end(`event: ${type}\ndata: ${JSON.stringify({ type, ...image })}\n\n`);
  };

test('in a stream', async () => {
  provider.answer(streaming(painted(1024, 1024)));
  const ask = { resolution: '4K', stream: true };
  expect(await charged('/image/generate', ask)).toMatchObject({ status: 200, cost: 40_000 });
  provider.answer(streaming(encoded(png(64, 64).subarray(0, 60))));
  expect(await charged('/image/generate', ask)).toMatchObject({ cost: 0 });
});

const jpeg = Buffer.concat([
  Buffer.from([0xff, 0xd8, 0xff, 0xc2, 0, 8, 8, 0x01, 0x90, 0x02, 0x80, 3]),
  Buffer.alloc(100_000, 5),
  Buffer.from([0xff, 0xd9]),
]);
const webp = Buffer.concat([
  Buffer.from('RIFF\x64\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\x01\0\xef\0\0', 'latin1'),
  Buffer.alloc(78, 1),
]);

test.each([
  ['png', png(64, 64)],
  ['jpeg', jpeg],
  ['webp', webp],
] as const)('the end of a %s is looked for', (format, image) => {
  const isWhole = (bytes: Buffer) => {
    const checking = isWholeImage(Buffer.from(bytes.toString('base64')), format);
    for (;;) {
      const { done, value } = checking.next();
      if (done) return value;
    }
  };
  expect(isWhole(image)).toBe(true);
  expect(isWhole(Buffer.concat([image, Buffer.alloc(1_000, 3)]))).toBe(true);
  for (const bytes of [1, 2, 3, 4, 13, 40])
    expect(isWhole(image.subarray(0, image.length - bytes)), `${bytes}`).toBe(false);
});

test('an image that is cut off is a fault of the provider, and is not charged', async () => {
  provider.answer(answerWith(encoded(png(64, 64).subarray(0, 60))));
  expect(await charged('/image/generate', {})).toMatchObject({ status: 500, cost: 0 });
  provider.answer(answerWith(encoded(png(64, 64).subarray(0, 60)), painted(1024, 1024)));
  expect(await charged('/image/generate', { n: 2 })).toMatchObject({
    status: 200,
    cost: 40_000,
    flags: ['malformed_reply'],
  });
});
