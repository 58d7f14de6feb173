import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkBase64, headOf, readImageHead } from '../../src/media/image-file.ts';
import { createReplyBytes } from '../../src/foundation/wire/reply/reply-bytes.ts';
import { bytesOfString, textOfString, withoutLongStrings } from '../../src/foundation/wire/reply/large-strings.ts';
import { parseImageReply } from '../../src/media/reply/image-reader.ts';
import { png } from './support/image-provider.ts';

// What providers answer is from strangers: it is read within bounds, and is what it says or nothing.

const deep = process.env['TOLLGATE_DEEP'] === '1';
const webp = (kind: string, rest: number[]) =>
  Buffer.concat([Buffer.from(`RIFF\0\0\0\0WEBP${kind}\0\0\0\0`, 'latin1'), Buffer.from(rest), Buffer.alloc(16)]);
const segment = (marker: number, data: number[]) => [0xff, marker, 0, data.length + 2, ...data];
const frame = segment(0xc2, [8, 0x01, 0x90, 0x02, 0x80, 3]);

describe('the head of an image', () => {
  test.each([
    ['png', png(70, 90), { format: 'png', width: 70, height: 90 }],
    ['jpeg', Buffer.from([0xff, 0xd8, ...frame, 0, 0]), { format: 'jpeg', width: 640, height: 400 }],
    [
      'jpeg behind other segments',
      Buffer.from([0xff, 0xd8, ...segment(0xe1, Array<number>(200).fill(0xc0)), 0xff, ...frame, 0, 0]),
      { format: 'jpeg', width: 640, height: 400 },
    ],
    [
      'lossy webp',
      webp('VP8 ', [0, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xf0, 0x00]),
      { format: 'webp', width: 320, height: 240 },
    ],
    ['lossless webp', webp('VP8L', [0x2f, 0x3f, 0xc1, 0x3b, 0x00]), { format: 'webp', width: 320, height: 240 }],
    [
      'extended webp',
      webp('VP8X', [0, 0, 0, 0, 0x3f, 0x01, 0x00, 0xef, 0x00, 0x00]),
      { format: 'webp', width: 320, height: 240 },
    ],
  ])('of a %s file', (_what, bytes, head) => {
    expect(readImageHead(bytes)).toEqual(head);
    expect(headOf(Buffer.from(bytes.toString('base64')))).toEqual(head);
  });

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['a page', Buffer.from('<html><body>hello</body></html>'.repeat(4))],
    ['an SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'.repeat(4))],
    ['a GIF', Buffer.from('GIF89a'.padEnd(64, '\0'), 'latin1')],
    ['an icon of macOS', Buffer.from('icns\0\0\0\0'.padEnd(64, '\0'), 'latin1')],
    ['a PNG without a size', png(64, 64).fill(0, 16, 24)],
    ['the beginning of a PNG', png(64, 64).subarray(0, 20)],
    ['a JPEG without a frame', Buffer.from([0xff, 0xd8, ...segment(0xe0, [1, 2, 3]), 0xff, 0xd9, 0, 0, 0, 0])],
  ])('%s has none', (_what, bytes) => {
    expect(readImageHead(bytes)).toBeNull();
  });

  test('anything is read without an error', () => {
    const beginnings = [png(64, 64), Buffer.from([0xff, 0xd8, ...frame]), webp('VP8X', [0])];
    fc.assert(
      fc.property(
        fc.constantFrom(...beginnings),
        fc.uint8Array({ maxLength: 400 }),
        fc.nat(40),
        (first, rest, keep) => {
          const head = readImageHead(Buffer.concat([first.subarray(0, keep), rest]));
          if (head !== null) expect(Math.min(head.width, head.height)).toBeGreaterThan(0);
        },
      ),
      { numRuns: deep ? 20_000 : 600 },
    );
  });
});

test.each([
  ['no JSON', '{"data":', 'its reply is not valid JSON'],
  ['a list', '[]', 'its reply is not a JSON object'],
])('a reply with %s is a fault of the provider, and says what is wrong', (_what, text, message) => {
  expect(() => parseImageReply(Buffer.from(text))).toThrow(
    expect.objectContaining({ message, attributedTo: 'provider', retryable: true }),
  );
});

test('a reply with too many keys is too large, which is no fault of the provider', () => {
  const text = JSON.stringify(Object.fromEntries(Array.from({ length: 3_000 }, (_, key) => [`k${key}`, 1])));
  expect(() => parseImageReply(Buffer.from(text))).toThrow(
    expect.objectContaining({ message: 'its reply has more structure than is read', tooLarge: true, retryable: false }),
  );
});

describe('long strings', () => {
  const value = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.base64String({ minLength: 3_000, maxLength: 4_000 }),
    fc.string({ unit: fc.constantFrom('"', '\\', 'é', '\n', 'a'), minLength: 2_000, maxLength: 3_000 }),
  );

  test('are taken out of any JSON and found again', () => {
    fc.assert(
      fc.property(fc.array(fc.dictionary(fc.string({ maxLength: 8 }), value), { maxLength: 4 }), (items) => {
        const outline = withoutLongStrings(Buffer.from(JSON.stringify(items)));
        const found = (JSON.parse(outline.json.toString()) as Record<string, string>[]).map((item) =>
          Object.fromEntries(Object.entries(item).map(([name, text]) => [name, textOfString(text, outline)])),
        );
        expect(found).toEqual(items.map((item) => ({ ...item })));
      }),
      { numRuns: deep ? 3_000 : 60 },
    );
  });

  test('that claim to be taken out are what they are', () => {
    const long = 'a'.repeat(3_000);
    const markIn = (text: string) => {
      const outline = withoutLongStrings(Buffer.from(text));
      return { outline, found: JSON.parse(outline.json.toString()) as string[] };
    };
    // Whoever has seen a mark of one text does not know the mark of the next.
    const seen = markIn(JSON.stringify([long])).found[0]!;
    for (const claim of ['\u0000long string 0', seen]) {
      const { outline, found } = markIn(JSON.stringify([long, claim]));
      expect(bytesOfString(found[0]!, outline).toString()).toBe(long);
      expect(bytesOfString(found[1]!, outline).toString()).toBe(claim);
      expect(textOfString(found[1]!, outline)).toBe(claim);
    }
  });

  test('without an end are refused', () => {
    expect(() => withoutLongStrings(Buffer.from('{"data":[{"b64_json":"iVBO\\"'))).toThrow(/has no end/);
    expect(() => withoutLongStrings(Buffer.alloc(1_000_000, '"'))).toThrow(/too many strings/);
    expect(() => withoutLongStrings(Buffer.alloc(1_000_000, '"\\"'))).toThrow(/too many strings/);
  });
});

test('base64 is that of RFC 4648 and nothing else', () => {
  const isBase64 = (text: string): boolean => {
    const work = checkBase64(Buffer.from(text, 'latin1'));
    for (;;) {
      const { done, value } = work.next();
      if (done) return value;
    }
  };
  fc.assert(fc.property(fc.base64String({ minLength: 4, maxLength: 400 }), (text) => isBase64(text)));
  for (const wrong of ['', 'abc', 'ab=c', 'a===', 'ab c', 'ab\nc', 'ab"c', 'ab-_', 'abcd\0abc', 'abc='.repeat(2)])
    expect(isBase64(wrong), wrong).toBe(false);
  const long = 'A'.repeat(3 * 1024 * 1024);
  expect(isBase64(long)).toBe(true);
  expect(isBase64(`${long.slice(0, -2)}==`)).toBe(true);
  expect(isBase64(`${'A'.repeat(1024 * 1024 - 1)}=${long}`)).toBe(false);
});

test.each([
  ['its length told', (length: number) => length],
  ['no length told', () => null],
  ['a length that is too small', (length: number) => length >> 1],
  ['a length that is too large', (length: number) => length + 5],
  ['a length beyond what is read', () => 2 ** 40],
])('the bytes of a reply with %s are those that came', (_what, declared) => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 8 }), fc.boolean(), (small, isLarge) => {
      const chunks = isLarge ? [...small, new Uint8Array(3_000_000).fill(7), new Uint8Array(700_001).fill(9)] : small;
      const whole = Buffer.concat(chunks);
      const bytes = createReplyBytes(declared(whole.length), 64 * 1024 * 1024);
      for (const chunk of chunks) bytes.push(chunk);
      expect(bytes.length).toBe(whole.length);
      const taking = bytes.take();
      for (;;) {
        const { done, value } = taking.next();
        if (done !== true) continue;
        expect(value.equals(whole)).toBe(true);
        return;
      }
    }),
    { numRuns: 10 },
  );
});

/** A module of its own, which counts no memory of the tests before: what they used is free when V8 collects it. */
async function ownReplyBytes(): Promise<typeof createReplyBytes> {
  const file = new URL('../../src/foundation/wire/reply/reply-bytes.ts', import.meta.url);
  return ((await import(`${file.href}?${Math.random()}`)) as { createReplyBytes: typeof createReplyBytes })
    .createReplyBytes;
}

test('memory that others use does not take the place of the large replies', async () => {
  const others = Buffer.allocUnsafeSlow(256 * 1024 * 1024);
  const bytes = (await ownReplyBytes())(1024 * 1024, 2 * 1024 * 1024);
  bytes.push(others.subarray(0, 1024 * 1024));
  const { value } = bytes.take().next() as { readonly value: Buffer };
  expect(value.buffer).toBeInstanceOf(SharedArrayBuffer);
});

test('large replies share so much memory that V8 does not see, and no more', async () => {
  const create = await ownReplyBytes();
  const kept = Array.from({ length: 7 }, () => {
    const bytes = create(32 * 1024 * 1024, 32 * 1024 * 1024);
    bytes.push(new Uint8Array(1));
    return (bytes.take().next() as { readonly value: Buffer }).value;
  });
  expect(kept.map(({ buffer }) => buffer instanceof SharedArrayBuffer)).toEqual([
    ...Array<boolean>(6).fill(true),
    false,
  ]);
});
