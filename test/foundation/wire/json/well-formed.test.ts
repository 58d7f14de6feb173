import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonText, parseJson } from '#wire';

const LIMITS = { jsonDepthMax: 64, jsonKeysMax: 1_000_000 };

const wellFormedJson = (text: string) => jsonText(Buffer.from(text), LIMITS);

describe('JSON text with halves of characters', () => {
  test.each([
    ['a high half', String.raw`"\ud83d"`, String.raw`"\ufffd"`],
    ['a low half', String.raw`"\uDEA7"`, String.raw`"\ufffd"`],
    ['halves in the wrong order', String.raw`"\udea7\ud83d"`, String.raw`"\ufffd\ufffd"`],
    ['two high halves', String.raw`"\ud83d\ud83d\udea7"`, String.raw`"\ufffd\ud83d\udea7"`],
    ['a half in a name', String.raw`{"a\ud83d":1}`, String.raw`{"a\ufffd":1}`],
    ['a half behind an escaped backslash', String.raw`"\\\ud83d"`, String.raw`"\\\ufffd"`],
    ['a half before a character that is not escaped', '"\\ud83d🚧"', '"\\ufffd🚧"'],
  ])('%s becomes U+FFFD', (_what, text, repaired) => {
    expect(wellFormedJson(text)).toBe(repaired);
  });

  test.each([
    String.raw`"\ud83d\udea7"`,
    String.raw`"\\ud83d"`,
    String.raw`"\\\\ud83d"`,
    String.raw`"\u0041\n\t\\"`,
    '"🚧"',
    '""',
    '{}',
    String.raw`"\u12`,
  ])('%s stays', (text) => {
    expect(wellFormedJson(text)).toBe(text);
  });

  test('is what toWellFormed makes of each text', () => {
    const unit = fc.constantFrom('\ud83d', '\udea7', '\\', '"', 'u', 'd83d', 'a', '🚧', '\n', '\ud800', '\udfff');
    fc.assert(
      fc.property(fc.array(unit), fc.boolean(), (units, allEscaped) => {
        const value = units.join('');
        const plain = JSON.stringify(value);
        const text = allEscaped ? plain.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16)}`) : plain;
        expect(JSON.parse(wellFormedJson(text))).toBe(value.toWellFormed());
        expect(parseJson(Buffer.from(text), LIMITS)).toBe(value.toWellFormed());
        expect(wellFormedJson(text).length).toBe(text.length);
      }),
    );
  });

  test('is repaired wherever a body is read', () => {
    const body = Buffer.from(String.raw`{"a":"x\ud83dy"}`);
    expect(parseJson(body, LIMITS)).toEqual({ a: 'x\ufffdy' });
    expect(jsonText(body, LIMITS)).toBe(String.raw`{"a":"x\ufffdy"}`);
    expect(parseJson(body, { ...LIMITS, repairText: true })).toEqual({ a: 'x\ud83dy' });
  });

  test('is told from bytes that are no UTF-8, in small bodies and large ones', () => {
    for (const size of [1, 20_000, 200_000]) {
      const text = JSON.stringify({ a: `${'x'.repeat(size)}ü\ufffd🚧` });
      expect(parseJson(Buffer.from(text), LIMITS)).toEqual(JSON.parse(text));
      const broken = Buffer.from(text).fill(0xff, size + 5, size + 6);
      for (const read of [parseJson, jsonText])
        expect(() => read(broken, LIMITS)).toThrow('The body is not valid UTF-8');
      expect(parseJson(broken, { ...LIMITS, repairText: true })).toEqual(JSON.parse(broken.toString()));
    }
  });

  test('takes time by its length alone', () => {
    // As many as a body may have: a million escapes.
    const times = 330_000;
    const began = process.cpuUsage().user;
    for (const unit of ['\\ud83d', '\\\\', '\\ud83d\\udea7', '\\\\\\ud83d', '\\u0041', '\\n'])
      wellFormedJson(`"${unit.repeat(times)}"`);
    wellFormedJson(`"${'\\'.repeat(6 * times)}ud83d"`);
    expect(process.cpuUsage().user - began).toBeLessThan(2_000_000);
  });
});
