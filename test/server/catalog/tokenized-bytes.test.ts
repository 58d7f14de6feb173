import { TextSize, tokenizedBytes } from '#catalog';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const bytes = (text: string) => Buffer.byteLength(text);
const CODES = Array.from({ length: 0x11_00_00 }, (_, code) => code).filter((code) => code < 0xd800 || code > 0xdfff);
const CHARACTERS = CODES.map((code) => String.fromCodePoint(code));
const FORMS: readonly ((text: string) => string)[] = [
  (text) => text.normalize('NFC'),
  (text) => text.normalize('NFKC'),
  (text) => text.toLowerCase(),
  (text) => text.normalize('NFC').toLowerCase(),
  (text) => text.normalize('NFKC').toLowerCase(),
  (text) => text.toLowerCase().normalize('NFC'),
  (text) => text.toLowerCase().normalize('NFKC'),
];
const longest = (text: string) => Math.max(bytes(text), ...FORMS.map((form) => bytes(form(text))));
/** Without `map`, whose texts a failed test would print. */
function short(texts: Iterable<string>): string[] {
  const found: string[] = [];
  for (const text of texts) if (found.length < 10 && tokenizedBytes(text) < longest(text)) found.push(text);
  return found;
}

test('no character is longer in a form in which a tokenizer reads it', () => {
  expect(short(CHARACTERS)).toEqual([]);
  expect(tokenizedBytes('\ufdfa'.repeat(100))).toBe(3_300);
  expect(tokenizedBytes('\u{1d160}')).toBe(12);
});

test('texts that no form makes longer count as they are', () => {
  for (const text of ['Grüße, 世界 한국어 नमस्ते 🙂 ﬁne…', 'plain', 'שלום مرحبا สวัสดี', ''])
    expect(tokenizedBytes(text)).toBe(bytes(text));
});

test('no mark makes the letter before it longer than counted', () => {
  const composed = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ<>='.split('');
  const marks: string[] = [];
  for (const one of CHARACTERS) {
    if (/\p{M}/u.test(one)) marks.push(one);
    if (!/\p{sc=Hangul}/u.test(one) && one.normalize('NFD') !== one) composed.push(one);
  }
  function* pairs() {
    for (const one of composed) for (const mark of marks) if (mark < '\u0370') yield one + mark;
    // Marks of other scripts, with the letters of their own block and one of ours.
    for (const mark of marks)
      for (const one of composed)
        if (mark >= '\u0370' && (one.codePointAt(0)! >> 8 === mark.codePointAt(0)! >> 8 || one === 'é'))
          yield one + mark;
  }
  expect(short(pairs())).toEqual([]);
});

test('no text of such characters is longer than counted', () => {
  const growing = CHARACTERS.filter((one) => tokenizedBytes(one) > bytes(one));
  const marks = growing.filter((one) => /\p{M}/u.test(one));
  const letters = ['a', 'ǖ', 'Ǟ', 'Ṥ', 'ﬁ', '가', 'ᄀ', 'क', 'é', 'ệ', 'ΰ', 'ᾂ'];
  const text = fc.array(fc.oneof(fc.constantFrom(...growing), fc.constantFrom(...marks), fc.constantFrom(...letters)), {
    maxLength: 20,
  });
  fc.assert(
    fc.property(text, (parts) => tokenizedBytes(parts.join('')) >= longest(parts.join(''))),
    { numRuns: 3_000 },
  );
});

test('a structure counts what its texts and its keys add', () => {
  const addedBy = (value: unknown) => {
    const size = new TextSize();
    size.addNormalised(value);
    return size.added;
  };
  expect(addedBy({ '\ufdfa': ['\ufdfa', 1, null, { a: 'x\ufdfa' }] })).toBe(90);
  expect(addedBy(['plain', '世界', 7, true])).toBe(0);
});

test('beyond a million characters each counts as the longest', () => {
  const million = 1024 * 1024;
  const size = new TextSize();
  size.add('é'.repeat(million - 1));
  expect(size.added).toBe(0);
  size.add('éé plain');
  expect(size).toMatchObject({ bytes: 2 * million + 8, added: 10 * 8 });
  size.add('plain');
  expect(size.added).toBe(80);
  expect(tokenizedBytes('\ufdfa'.repeat(million + 1))).toBe(33 * (million + 1));
});
