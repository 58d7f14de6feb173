import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseJson, readJson, readJsonText } from '../../../../src/foundation/wire/json/json-guard.ts';
import { parsePieces, PieceError } from '../../../../src/foundation/wire/json/parse-pieces.ts';

const MIB = 1024 * 1024;
const LIMITS = { jsonDepthMax: 64, jsonKeysMax: 10_000 };
const halfBefore = (bytes: number) => `["${'a'.repeat(bytes - 2)}\\ud83d\\ude00\\ud83d \\" \\\\","b"]`;

/** What reading comes to: a value, or what was said against it. */
const outcome = async (read: () => unknown): Promise<unknown> => {
  try {
    return { value: await read() };
  } catch (error) {
    // Only the words for broken syntax differ: those for a large text always have the position.
    return { said: (error as Error).message.replace(/(is not valid JSON): .*/s, '$1') };
  }
};

test.each([-7, -6, -5, -4, -3, -2, -1, 0, 1])(
  'a character whose escapes stand %i bytes from the end of a piece is whole',
  async (offset) => {
    const body = Buffer.from(halfBefore(MIB + offset));
    expect(await readJson(body, LIMITS)).toEqual([`${'a'.repeat(MIB + offset - 2)}😀\ufffd " \\`, 'b']);
    const { text, value } = await readJsonText(body, LIMITS);
    expect(JSON.parse(text)).toEqual(parseJson(body, LIMITS));
    expect(value).toEqual(parseJson(body, LIMITS));
  },
);

test('a large body is read as a small one is, wherever a piece of it ends', async () => {
  const piece = fc.constantFrom(
    '"',
    '\\',
    '\\"',
    '\\u',
    '\\ud83d',
    '\\ude00',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '1',
    '12345678901234567890',
    '1e5',
    'a',
    ' ',
    'é',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 40 }), fc.integer({ min: 0, max: 30 }), async (pieces, back) => {
      const body = Buffer.from(`["${'a'.repeat(MIB - back)}${pieces.join('')}"]`);
      const read = await outcome(() => readJson(body, LIMITS));
      expect(isDeepStrictEqual(read, await outcome(() => parseJson(body, LIMITS)))).toBe(true);
    }),
    { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 200 : 10 },
  );
});

test('a text that is parsed in pieces is what JSON.parse makes of it, wherever a piece ends', () => {
  const inPieces = (text: string, bytes: number): unknown => {
    const work = parsePieces(Buffer.from(text), JSON.parse, bytes);
    for (;;) {
      const { done, value } = work.next();
      if (done) return value;
    }
  };
  const fragment = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '"__proto__":',
    '"a":1,',
    '1',
    '""',
    '-',
    ' ',
  );
  const spoilt = fc
    .tuple(fc.json({ maxDepth: 6 }), fc.nat(), fragment, fc.integer({ min: 0, max: 2 }))
    .map(([json, at, piece, cut]) => {
      const place = at % (json.length + 1);
      return json.slice(0, place) + piece + json.slice(place + cut);
    });
  fc.assert(
    fc.property(fc.oneof(fc.json({ maxDepth: 6 }), spoilt), fc.integer({ min: 1, max: 40 }), (text, bytes) => {
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch {
        expect(() => inPieces(text, bytes)).toThrow(PieceError);
        return;
      }
      const read = inPieces(text, bytes);
      expect(isDeepStrictEqual(read, value) && JSON.stringify(read) === JSON.stringify(value)).toBe(true);
    }),
    { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 100_000 : 3_000 },
  );
});

test('the fault of a large text has its position', async () => {
  const body = Buffer.from(`[${'{"a":[1,2]},'.repeat(60_000)}{"a":x}]`);
  await expect(readJson(body, { jsonDepthMax: 9, jsonKeysMax: 200_000 })).rejects.toThrow(
    `unexpected 'x' at position ${body.length - 3}`,
  );
  const short = Buffer.from(`[${'{"a":[1,2]},'.repeat(60_000)}{"a":1}`);
  await expect(readJson(short, { jsonDepthMax: 9, jsonKeysMax: 200_000 })).rejects.toThrow(
    `it ends too early, at position ${short.length}`,
  );
});

test('what is beyond the limits in a later piece is refused', async () => {
  const behind = (structure: string) => Buffer.from(`["${'a'.repeat(2 * MIB)}",${structure}]`);
  await expect(readJson(behind('['.repeat(64)), LIMITS)).rejects.toThrow('nested deeper than 64 levels');
  await expect(readJson(behind('{},'.repeat(10_000)), LIMITS)).rejects.toThrow('more than 10000 objects and arrays');
  await expect(readJson(behind('0,'.repeat(200_001)), LIMITS)).rejects.toThrow('more than 200000 elements');
  await expect(readJson(behind(`{"${'k'.repeat(640_000)}":1}`), LIMITS)).rejects.toThrow(
    'keys of more than 640000 bytes together',
  );
  await expect(readJson(behind(`"${String.raw`\n`.repeat(1_000_001)}"`), LIMITS)).rejects.toThrow(
    'more than 1000000 escapes',
  );
  const names = Array.from({ length: 20_001 }, (_, i) => `"${i}":1`).join();
  await expect(readJson(behind(`{${names}}`), { ...LIMITS, jsonKeysMax: 50_000 })).rejects.toThrow(
    'an object with more than 20000 members',
  );
  await expect(readJson(behind('7'.repeat(70_000)), LIMITS)).rejects.toThrow(
    'long numbers of more than 65536 digits together',
  );
});

test('long texts that are no keys, and long numbers that are few, are read', () => {
  const text = 'a'.repeat(700_000);
  const number = '7'.repeat(60_000);
  expect(JSON.stringify(parseJson(Buffer.from(`{"a":"${text}","b":${number}}`), LIMITS))).toBe(
    `{"a":"${text}","b":${number}}`,
  );
});
