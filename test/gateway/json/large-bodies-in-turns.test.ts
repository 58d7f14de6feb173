import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseJson, readJson, readJsonText } from '../../../src/wire/json-guard.ts';

const MIB = 1024 * 1024;
const LIMITS = { jsonDepthMax: 64, jsonKeysMax: 10_000 };
const halfBefore = (bytes: number) => `["${'a'.repeat(bytes - 2)}\\ud83d\\ude00\\ud83d \\" \\\\","b"]`;

/** What reading comes to: a value, or what was said against it. */
const outcome = async (read: () => unknown): Promise<unknown> => {
  try {
    return { value: await read() };
  } catch (error) {
    return { said: (error as Error).message };
  }
};

test.each([-7, -6, -5, -4, -3, -2, -1, 0, 1])(
  'a character whose escapes stand %i bytes from the end of a piece is whole',
  async (offset) => {
    const body = Buffer.from(halfBefore(MIB + offset));
    expect(await readJson(body, LIMITS)).toEqual([`${'a'.repeat(MIB + offset - 2)}😀\ufffd " \\`, 'b']);
    expect(JSON.parse(await readJsonText(body, LIMITS))).toEqual(parseJson(body, LIMITS));
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

test('what is beyond the limits in a later piece is refused', async () => {
  const behind = (structure: string) => Buffer.from(`["${'a'.repeat(2 * MIB)}",${structure}]`);
  await expect(readJson(behind('['.repeat(64)), LIMITS)).rejects.toThrow('nested deeper than 64 levels');
  await expect(readJson(behind('{},'.repeat(10_000)), LIMITS)).rejects.toThrow('more than 10000 objects and arrays');
  await expect(readJson(behind('0,'.repeat(200_001)), LIMITS)).rejects.toThrow('more than 200000 elements');
  await expect(readJson(behind(`{"${'k'.repeat(640_000)}":1}`), LIMITS)).rejects.toThrow(
    'keys of more than 640000 bytes together',
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
