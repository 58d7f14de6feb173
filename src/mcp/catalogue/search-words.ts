const WORD = /[\p{L}\p{M}\p{N}]+/gu;
/** `readFile`, `v2Search`: a capital behind something small begins a word. */
const HUMP = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu;
/** Writing without spaces between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u;
/** A long one is cut: it is a stranger's text. */
const TEXT_MAX = 4_096;
const WORD_MAX = 40;

/**
 * The words of a text as search compares them: lower case, identifiers taken apart, English endings dropped,
 * writing without spaces in pairs of characters. The same text always gives the same words.
 */
export function wordsOf(text: string): readonly string[] {
  const words: string[] = [];
  const parts = text.slice(0, TEXT_MAX).normalize('NFKC').replace(HUMP, ' ').toLowerCase().match(WORD) ?? [];
  for (const part of parts) {
    if (!UNSPACED.test(part)) words.push(stem(part.slice(0, WORD_MAX)));
    else {
      const characters = Array.from(part);
      if (characters.length === 1) words.push(part);
      for (let i = 1; i < characters.length; i++) words.push(characters[i - 1]! + characters[i]!);
    }
  }
  return words;
}

/** Rough, and the same for texts and queries: `searches`, `searching` and `search` are one. */
function stem(word: string): string {
  let stemmed = word;
  if (stemmed.length > 4 && stemmed.endsWith('ies')) stemmed = `${stemmed.slice(0, -3)}y`;
  else if (stemmed.length > 3 && stemmed.endsWith('s') && !stemmed.endsWith('ss')) stemmed = stemmed.slice(0, -1);
  if (stemmed.length > 5 && stemmed.endsWith('ing')) stemmed = stemmed.slice(0, -3);
  else if (stemmed.length > 4 && stemmed.endsWith('ed')) stemmed = stemmed.slice(0, -2);
  if (stemmed.length > 3 && stemmed.endsWith('e')) stemmed = stemmed.slice(0, -1);
  const last = stemmed.at(-1);
  return stemmed.length > 3 && last === stemmed.at(-2) && /[a-z]/.test(last!) ? stemmed.slice(0, -1) : stemmed;
}
