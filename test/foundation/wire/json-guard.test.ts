import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GatewayError } from '#errors';
import { parseJson } from '#wire';
import { guardStructure } from '../../../src/foundation/wire/json/json-guard.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';
const LIMITS = { jsonDepthMax: 64, jsonKeysMax: 10_000 };
const MIB = 1024 * 1024;
/** MiB of a long text. */
const LONG = deep ? 10 : 4;

const parse = (text: string | Buffer, limits = LIMITS) => parseJson(Buffer.from(text as string), limits);
/**
 * What a reader makes of the text that is written from what was parsed: numbers that no double holds are kept as
 * they came.
 */
const written = (text: string): unknown => JSON.parse(JSON.stringify(parse(text)));
const refusal = (text: string | Buffer): GatewayError => {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error(`accepted: ${text.toString().slice(0, 40)}`);
};

describe('parsing JSON from a stranger', () => {
  it('gives what JSON.parse gives', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => {
        expect(written(text)).toEqual(JSON.parse(text));
      }),
      { numRuns: deep ? 100_000 : 400 },
    );
  });

  it('agrees with JSON.parse on what is no JSON, and says where', () => {
    const fragment = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      '"a"',
      '1',
      '-',
      '.5',
      'e3',
      'true',
      'nul',
      ' ',
      '\n',
      '\u0001',
      'ü',
      '\\u00e9',
      '\\u00',
      "'",
      '//',
    );
    fc.assert(
      fc.property(fc.array(fragment, { minLength: 1, maxLength: 20 }), (parts) => {
        const text = parts.join('');
        let valid = true;
        try {
          JSON.parse(text);
        } catch {
          valid = false;
        }
        if (valid) {
          expect(written(text)).toEqual(JSON.parse(text));
          return;
        }
        const { code, message } = refusal(text);
        expect(code).toBe('invalid_request');
        if (text.trim() === '') return;
        const position = Number(/ position (\d+)/.exec(message)![1]);
        // Up to the position everything is the beginning of some JSON: what V8 says of that part is that it ends
        // too early.
        const before = Buffer.from(text).subarray(0, position).toString();
        expect(position).toBeLessThanOrEqual(Buffer.byteLength(text));
        expect(beginsJson(before)).toBe(true);
      }),
      { numRuns: deep ? 1_000_000 : 600 },
    );
  });

  it.each([
    ['{"a":x}', "unexpected 'x' at position 5"],
    ['{"a":1,}', "unexpected '}' at position 7"],
    ['{"ü":1 2}', "unexpected '2' at position 8"],
    ['[1 2]', "unexpected '2' at position 3"],
    ['{"a"', 'it ends too early, at position 4'],
    ['"abc', 'it ends too early, at position 4'],
    ['["a\nb"]', 'unexpected byte 0x0a at position 3'],
    ['["\\x"]', "unexpected 'x' at position 3"],
    ['{}{}', "unexpected '{' at position 2"],
  ])('says of %s: %s', (text, words) => {
    expect(refusal(text).message).toContain(words);
  });

  it('says that nothing came', () => {
    expect(refusal('').message).toContain('empty');
    expect(refusal('  \n').message).toContain('empty');
  });

  it('skips a byte order mark', () => {
    expect(parse('\uFEFF{"a":1}')).toEqual({ a: 1 });
    expect(refusal('\uFEFF{"a":x}').message).toContain('position 8');
  });

  it('caps depth, keys, containers and elements, and nothing inside strings', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(() => parse(nested(64))).not.toThrow();
    expect(refusal(nested(65)).message).toContain('deeper than 64 levels (at position 64)');
    const keys = (count: number) => `{${Array.from({ length: count }, (_, i) => `"${i}":0`).join()}}`;
    expect(() => parse(keys(10_000))).not.toThrow();
    expect(refusal(keys(10_001)).message).toContain('more than 10000 keys');
    expect(refusal(`[${'{},'.repeat(10_001)}0]`).message).toContain('more than 10000 objects and arrays');
    const containers = (count: number) => `[${'{},'.repeat(count - 2)}{}]`;
    expect(() => parse(containers(10_000))).not.toThrow();
    expect(refusal(containers(10_001)).message).toContain('more than 10000 objects and arrays');
    expect(refusal(`[${'0,'.repeat(200_001)}0]`).message).toContain('more than 200000 elements and members');
    const punctuation = JSON.stringify({ a: '[{:,'.repeat(50_000), [`b${'"\\'.repeat(100)}`]: '\\"[' });
    expect(parse(punctuation)).toEqual(JSON.parse(punctuation));
  });

  it('finds the end of strings of every length, with quotes and backslashes anywhere', () => {
    const piece = fc.oneof(
      fc.constantFrom('\\', '"', '\\\\"', '[', ':'),
      fc.nat(130).map((length) => 'x'.repeat(length)),
    );
    fc.assert(
      fc.property(
        fc.array(
          fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
          { maxLength: 4 },
        ),
        (texts) => {
          // Were the end of a string missed, its brackets or those after it would count.
          expect(parse(JSON.stringify([texts]), { jsonDepthMax: 2, jsonKeysMax: 2 })).toEqual([texts]);
        },
      ),
      { numRuns: deep ? 100_000 : 600 },
    );
  });

  it('keeps numbers that no double holds as they came, however few or many digits are around them', () => {
    const text =
      '{"seed":9007199254740993,"bounds":[-9223372036854775808,18446744073709551615,1e400],"a":0.1,"b":123456789012345,"c":1.0000000000000001}';
    expect(JSON.stringify(parse(text))).toBe(text.replace('1.0000000000000001', '1'));
    expect(parse('{"a":12,"b":[1.5,-3e2]}')).toEqual({ a: 12, b: [1.5, -300] });
  });

  it('keeps prototypes clean', () => {
    const parsed = parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}') as Record<
      string,
      unknown
    >;
    expect(Object.hasOwn(parsed, '__proto__')).toBe(true);
    expect(parsed['polluted']).toBeUndefined();
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it.each([
    ['brackets', Buffer.alloc(LONG * MIB, '[')],
    ['keys', Buffer.from(`{${'"a":0,'.repeat(170_000 * LONG)}"b":0}`)],
    ['empty objects', Buffer.from(`[${'{},'.repeat(340_000 * LONG)}0]`)],
    ['escaped quotes', Buffer.concat([Buffer.from('["'), Buffer.alloc(LONG * MIB, '\\"'), Buffer.from('"]')])],
    ['backslashes', Buffer.concat([Buffer.from('["'), Buffer.alloc(LONG * MIB, '\\\\'), Buffer.from('"]')])],
    ['a string without end', Buffer.concat([Buffer.from('["'), Buffer.alloc(LONG * MIB, 'x')])],
    ['short strings', Buffer.from(`["${'","'.repeat(90_000 * LONG)}"]`)],
    ['quotes after 65 characters', Buffer.from(`[${`"${'x'.repeat(65)}",`.repeat(15_000 * LONG)}0]`)],
    ['one number', Buffer.alloc(LONG * MIB, '1')],
    ['spaces', Buffer.alloc(LONG * MIB, ' ')],
  ])(`reads ${LONG} MiB of %s in bounded time`, (_name, bytes) => {
    const before = process.threadCpuUsage();
    try {
      parseJson(bytes, LIMITS);
    } catch (error) {
      expect(error).toBeInstanceOf(GatewayError);
    }
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(atThisLoad(150 * LONG));
  });
});

/**
 * Whether some JSON begins with `text`: completing it in one of a few ways makes V8 complain about its end only, or
 * not at all.
 */
function beginsJson(text: string): boolean {
  const completions = [
    '',
    '0',
    '"',
    'u0000"',
    '000"',
    '00"',
    '0"',
    'rue',
    'ue',
    'e',
    'alse',
    'lse',
    'se',
    'ull',
    'll',
    'l',
  ];
  return completions.some((completion) => {
    try {
      JSON.parse(text + completion);
      return true;
    } catch (error) {
      return /end of JSON input|Unterminated string|Expected .* at position (\d+)|No number after|Exponent part|Unterminated fractional|Bad /.test(
        (error as Error).message,
      )
        ? endsEarly(text + completion)
        : false;
    }
  });
}

/** V8 reports the end of its input as the place of the error. */
function endsEarly(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const { message } = error as Error;
    const position = /position (\d+)/.exec(message)?.[1];
    return position === undefined ? message.includes('end of JSON input') : Number(position) >= text.length;
  }
}

it('a number of millions of digits is refused without being read to its end', () => {
  const least = (run: () => void): number => {
    const once = () => {
      const began = process.threadCpuUsage();
      run();
      const { user, system } = process.threadCpuUsage(began);
      return user + system;
    };
    return Math.min(once(), once(), once());
  };
  const limits = { jsonDepthMax: 8, jsonKeysMax: 100 };
  const text = Buffer.from(`{"n":${'1'.repeat(20_000_000)}}`);
  const refused = least(() => expect(() => parseJson(text, limits)).toThrow(/long numbers of more than 65536 digits/));
  // As much white space, which is read to its end.
  const blank = Buffer.from(`[${' '.repeat(20_000_000)}]`);
  expect(refused).toBeLessThan(least(() => guardStructure(blank, limits)) / 2);
});
