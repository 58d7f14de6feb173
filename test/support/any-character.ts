import fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };

/**
 * Any character of Unicode, as `unit` of `fc.string`. fast-check's own `binary` builds a table of all 1.1 million of
 * them: a second, and 113 MB for as long as the process lives.
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
