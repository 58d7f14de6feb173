import type { Bound } from '#wire';

/* The JSON that takes longest to read, as one value that stands somewhere in what a stranger sends. */

export const WORST_BYTES = 8_200_000;
/** A little less than a line of a server may have that a provider's proxy starts. */
export const LINE_BYTES = 4_190_000;

const filled = (piece: string, bytes: number): string => piece.repeat(Math.floor(bytes / piece.length)).slice(0, -1);
const names = (count: number): string =>
  `{${Array.from({ length: count }, (_, i) => `"k${i.toString(36)}":1`).join()}}`;

/** Far beyond what is read. */
const beyond = (bytes: number): Readonly<Record<string, () => string>> => ({
  'empty objects': () => `[${filled('{},', bytes)}]`,
  'deep arrays': () => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
  names: () => names(bytes / 14),
  'the same name': () => `{${filled('"a":1,', bytes)}}`,
  'short numbers': () => `[${filled('1,', bytes)}]`,
  'long numbers': () => `[${filled(`${'7'.repeat(60)},`, bytes)}]`,
  'white space': () => `[${' '.repeat(bytes)}0]`,
  'a long text that is no ASCII': () => `"${'a'.repeat(bytes)}\u00e9"`,
  'quotes in a text': () => `"${String.raw`\"`.repeat(bytes / 4)}"`,
  'one text of escapes': () => `"${String.raw`\n`.repeat(bytes / 2)}"`,
});

/** 8 MiB each. */
export const BEYOND = beyond(WORST_BYTES);

/** The same, but as long as a line of a server that a provider's proxy starts may be. */
export const BEYOND_IN_A_LINE: typeof BEYOND = {
  ...Object.fromEntries(Object.entries(beyond(LINE_BYTES)).map(([shape, make]) => [`${shape} in a line`, make])),
  'returns of the carriage in a line': () => `[${'\r '.repeat(LINE_BYTES / 2)}0]`,
};

/** The most members of one object, if it is read in pieces. */
const MEMBERS = 19_900;
const objects = (count: number): string[] => [
  ...Array<string>(Math.floor(count / MEMBERS)).fill(names(MEMBERS)),
  names(count % MEMBERS),
];
/** What stands around the value has less of everything. */
const AROUND = 200;
/** All strings of a text may have 1,000,000 escapes together. */
const ESCAPES = 990_000;

/** As much as a bound lets through. `bytesMax`: the most bytes of the whole text, if not 8 MiB. */
export const within = ({
  jsonKeysMax,
  jsonElementsMax,
  bytesMax = Infinity,
  denseBytesMax = Infinity,
}: Bound): Readonly<Record<string, () => string>> => {
  const most = Math.min(WORST_BYTES, bytesMax) - 10 * AROUND;
  const bytes = Math.min(most, denseBytesMax - 10 * AROUND);
  const keys = Math.min(jsonKeysMax - AROUND, Math.floor(bytes / 9));
  const commas = jsonElementsMax - AROUND;
  return {
    'as many names as are read': () => `[${objects(Math.min(keys, commas)).join()}]`,
    'as many objects as are read': () => `[${filled('{},', 3 * Math.min(keys, commas))}]`,
    'as many numbers as are read': () => `[${filled('1,', Math.min(bytes, 2 * commas))}]`,
    'as many short texts as are read': () =>
      `[${Array.from({ length: Math.min(bytes / 8, commas / 2) }, (_, i) => `"${i.toString(36)}"`).join()}]`,
    'as many escapes as are read': () => `"${String.raw`\n`.repeat(Math.min(ESCAPES, bytes / 2))}"`,
    'as many halves of characters as are read': () =>
      `"${String.raw`\ud83d\ude00`.repeat(Math.min(ESCAPES / 2, bytes / 12))}"`,
    'as long a text as is read': () => `"${'a\u00e9'.repeat(bytes / 3)}"`,
    'as many emoji as are read': () => `"${'\u{1f600}'.repeat(bytes / 4)}"`,
    'a text of ASCII but for its end': () => `"${'a'.repeat(bytes)}\u00e9"`,
    'as long a text of ASCII as is read': () => `"${'a'.repeat(most)}"`,
    'as much white space as is read': () => `[${' '.repeat(bytes)}0]`,
  };
};
