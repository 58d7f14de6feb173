import fc from 'fast-check';
import { anyCharacter } from './any-character.ts';

// fast-check's own `webUrl` and `webPath` build a table of all characters, which takes seconds and stays in memory.

const PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@";
const part = fc
  .array(
    fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...PLAIN.split('')) },
      { weight: 1, arbitrary: anyCharacter.map(encodeURIComponent) },
    ),
  )
  .map((units) => units.join(''));
const partOrNone = fc.option(part, { nil: null });

/** The path of any web address. It may be empty. */
export const anyWebPath: fc.Arbitrary<string> = fc.array(part).map((parts) => parts.map((each) => `/${each}`).join(''));

/** Any web address. */
export const anyWebUrl: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom('http', 'https'), fc.webAuthority(), anyWebPath, partOrNone, partOrNone)
  .map(([scheme, authority, path, query, fragment]) => {
    const after = [query === null ? '' : `?${query}`, fragment === null ? '' : `#${fragment}`].join('');
    return `${scheme}://${authority}${path}${after}`;
  });
