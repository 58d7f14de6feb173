const WORD = /[\p{L}\p{M}\p{N}]+/gu;
/** In `readFile` and `v2Search`, a capital after a small letter or a digit begins a word. */
const HUMP = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu;
/** Scripts without spaces between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u;
/** Longer texts are cut, because they come from providers. */
const TEXT_MAX = 4_096;
const WORD_MAX = 40;

/**
 * The words of a text in the form that the search compares. They are in lower case, identifiers are split, English
 * endings are removed, and text in scripts without spaces becomes pairs of characters. The same text always gives the
 * same words.
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

/**
 * A rough stemmer. It only has to treat texts and queries alike: `searches`, `searching` and `search` become the same.
 */
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
