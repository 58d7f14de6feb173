import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import fc from 'fast-check';
import { type DemoProvider, runDemoProvider } from '../../../src/program/demo/provider.ts';
import { readPng, toPng } from '../../../src/program/demo/png.ts';

// The image model lowers a bar over an image that it is given.

let provider: DemoProvider;
beforeAll(async () => {
  provider = await runDemoProvider();
});
afterAll(() => provider.close());

const GREEN = [20, 160, 60] as const;
const green = toPng({
  width: 48,
  height: 40,
  pixels: new Uint8Array(48 * 40 * 4).map((_, at) => [...GREEN, 255][at % 4]!),
});

async function edit(fields: Readonly<Record<string, string | Buffer>>): Promise<Response> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    if (typeof value === 'string') form.set(name, value);
    else form.set(name, new Blob([new Uint8Array(value)]), 'image.png');
  return fetch(`${provider.url}/images/edits`, { method: 'POST', body: form });
}

async function edited(fields: Readonly<Record<string, string | Buffer>>) {
  const { data } = (await (await edit(fields)).json()) as { data: { b64_json: string }[] };
  return data.map(({ b64_json: image }) => readPng(Buffer.from(image, 'base64'), 'image'));
}

const countOf = ({ pixels }: { readonly pixels: Uint8Array }) =>
  Array.from({ length: pixels.length / 4 }, (_, index) => pixels[index * 4] === GREEN[0]).filter(Boolean).length;

test('the image is kept, and has a bar', async () => {
  const [image] = await edited({ prompt: 'Lower it', image: green });
  expect([image!.width, image!.height]).toEqual([48, 40]);
  const left = countOf(image!);
  expect(left).toBeLessThan(48 * 40);
  expect(left).toBeGreaterThan(48 * 30);
});

test('a mask keeps what it covers, and a size is kept to', async () => {
  const mask = (alpha: number) =>
    toPng({ width: 2, height: 2, pixels: new Uint8Array(16).map((_, at) => (at % 4 === 3 ? alpha : 0)) });
  const images = await edited({ prompt: 'Lower it', image: green, mask: mask(255), n: '2', size: '96x80' });
  expect(images.map((image) => [image.width, image.height, countOf(image)])).toEqual([
    [96, 80, 96 * 80],
    [96, 80, 96 * 80],
  ]);
  const [open] = await edited({ prompt: 'Lower it', image: green, mask: mask(0) });
  expect(countOf(open!)).toBeLessThan(48 * 40);
});

test.each([
  [{ image: green }, 'prompt'],
  [{ prompt: 'A' }, 'image'],
  [{ prompt: 'A', image: Buffer.from('GIF89a') }, 'image'],
  [{ prompt: 'A', image: green, size: 'large' }, 'size'],
  [{ prompt: 'A', image: green, n: '11' }, 'n'],
])('a fault is refused with the name of its field', async (fields, param) => {
  const response = await edit(fields);
  expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }]);
});

test('files are read with every filter of their rows', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 24, maxLength: 24 }), fc.constantFrom(0, 1, 2, 3, 4), (bytes, filter) => {
      const picture = { width: 3, height: 2, pixels: bytes };
      const file = toPng(picture);
      expect(readPng(withFilter(file, bytes, filter), 'image').pixels).toEqual(bytes);
    }),
  );
});

/** The same file with its rows written another way. */
function withFilter(file: Buffer, pixels: Uint8Array, filter: number): Buffer {
  const row = 12;
  const rows = Buffer.alloc(2 * (row + 1));
  for (let y = 0; y < 2; y++) {
    rows[y * (row + 1)] = filter;
    for (let x = 0; x < row; x++) {
      const left = x < 4 ? 0 : pixels[y * row + x - 4]!;
      const above = y === 0 ? 0 : pixels[(y - 1) * row + x]!;
      const corner = x < 4 || y === 0 ? 0 : pixels[(y - 1) * row + x - 4]!;
      const guess = left + above - corner;
      const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
      const paeth = a <= b && a <= c ? left : b <= c ? above : corner;
      rows[y * (row + 1) + 1 + x] = pixels[y * row + x]! - [0, left, above, (left + above) >> 1, paeth][filter]!;
    }
  }
  const data = deflateSync(rows);
  const chunk = Buffer.concat([Buffer.alloc(4), Buffer.from('IDAT'), data, Buffer.alloc(4)]);
  chunk.writeUInt32BE(data.length);
  return Buffer.concat([file.subarray(0, 33), chunk, file.subarray(-12)]);
}
