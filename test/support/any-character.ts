import fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };

/**
 * Any Unicode character, for `unit` of `fc.string`. fast-check's own `binary` builds a table of all 1.1 million
 * characters. This takes a second, and 113 MB until the process ends.
 */
export const anyCharacter: fc.Arbitrary<string> = fc.nat(0x10ffff - SURROGATES.count).map(
  (index) => String.fromCodePoint(index < SURROGATES.first ? index : index + SURROGATES.count),
  (text) => {
    const code = typeof text === 'string' ? text.codePointAt(0) : undefined;
    if (code === undefined || text !== String.fromCodePoint(code) || !text.isWellFormed())
      throw new Error('not one character');
    return code < SURROGATES.first ? code : code - SURROGATES.count;
  },
);
