// How the guide's search ranks the parts of the pages. It runs in the browser.

/** @typedef {readonly [address: string, page: string, heading: string, text: string]} Entry */

/** Words of a question that say nothing about its subject. */
const EMPTY_WORDS = new Set(
  'a an and are at be by can do does for from get has have how i if in is it its me my need of on or our should so that the their there this to us want was we what when where which who why will with you your'.split(
    ' ',
  ),
);

/** Other words for the same: a reader types one, and the pages may use the other. */
const SAME = [
  ['spend', 'spent', 'spending', 'cost', 'charge', 'bill', 'invoice', 'statement'],
  ['monthly', 'month'],
  ['vision', 'picture', 'image'],
  ['gdpr', 'privacy', 'stored', 'delete'],
  ['login', 'sign', 'sso', 'oidc', 'people'],
  ['docker', 'container', 'compose'],
  ['k8s', 'kubernetes', 'helm', 'chart'],
  ['balancing', 'balance', 'providers', 'proxy'],
  ['caching', 'cache', 'stay'],
  ['schema', 'json', 'structured'],
  ['refund', 'credit', 'debit', 'correct'],
  ['block', 'ban', 'freeze', 'refuse'],
  ['rotate', 'replace', 'renew'],
  ['raise', 'increase'],
  ['customer', 'account', 'user'],
  ['receipt', 'proof'],
  ['remove', 'delete'],
  ['payout', 'withdraw'],
  ['quota', 'limit'],
  ['sell', 'offer', 'provide'],
  ['rollback', 'downgrade', 'roll'],
  ['down', 'away', 'fail'],
  ['give', 'refund'],
];

/**
 * The words of a search. Question words are left out if others remain, and plurals are searched as singulars.
 * @type {(text: string) => readonly string[]}
 */
export function wordsOf(text) {
  const all = text
    .toLowerCase()
    .split(/[\s?!,;]+/)
    .filter((word) => word !== '');
  const telling = all.filter((word) => !EMPTY_WORDS.has(word));
  return (telling.length > 0 ? telling : all).map((word) =>
    word.length > 4 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word,
  );
}

/** @type {(word: string) => readonly string[]} */
const othersOf = (word) => SAME.find((group) => group.includes(word))?.filter((other) => other !== word) ?? [];

/**
 * The place of the first word of the text that begins with `word`, or -1. Inside of words nothing counts: `redis` is no
 * part of `credits`.
 * @type {(text: string, word: string) => number}
 */
function placeOf(text, word) {
  let at = text.indexOf(word);
  while (at > 0 && /[\p{L}\p{N}]/u.test(text[at - 1] ?? '')) at = text.indexOf(word, at + 1);
  return at;
}

/** @type {(heading: string) => string | undefined} */
const subjectOf = (heading) => heading.split(':')[0];

/**
 * Returns how well a part of a page fits the words. 0 if less than half of the words, or words of the same meaning,
 * occur in it. A part with all words comes before parts with some of them.
 * @type {(entry: Entry, words: readonly string[]) => number}
 */
function score([, page, heading, text], words) {
  const inPage = page.toLowerCase();
  const inHeading = heading.toLowerCase();
  const inText = text.toLowerCase();
  /** @type {(word: string) => number} */
  const pointsOf = (word) => {
    const at = placeOf(inText, word);
    return (
      (placeOf(inHeading, word) === -1 ? 0 : 8) +
      (placeOf(inPage, word) === -1 ? 0 : 4) +
      (at === -1 ? 0 : 1 + (at < 200 ? 1 : 0)) +
      // A heading whose subject is the word alone answers a search for the word alone.
      (words.length === 1 && (subjectOf(inHeading) === word || subjectOf(inPage) === word) ? 8 : 0)
    );
  };
  let sum = 0;
  let matched = 0;
  for (const word of words) {
    const points = pointsOf(word) || Math.max(0, ...othersOf(word).map(pointsOf)) / 2;
    if (points > 0) matched += 1;
    sum += points;
  }
  return matched * 2 < words.length ? 0 : sum * (matched / words.length) ** 2;
}

/**
 * The parts of the pages that fit the words, the best first. The sort is stable, so equal ones stay in the order of the
 * pages.
 * @type {(entries: readonly Entry[], words: readonly string[]) => readonly Entry[]}
 */
export const bestFirst = (entries, words) =>
  entries
    .map((entry) => ({ entry, points: score(entry, words) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points)
    .map(({ entry }) => entry);
