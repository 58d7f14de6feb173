/** Blocks that are looked at: more are not taken out. */
const BLOCKS_MAX = 100;
const OPENING = /<([a-z][a-z_-]{2,40})>/g;

/**
 * The words of a person, without the blocks that coding agents put around it, such as `<system-reminder>…` and
 * `<environment_context>…`. All of the text if nothing else is in it.
 */
export function ownWords(text: string): string {
  let own = '';
  let from = 0;
  let blocks = 0;
  OPENING.lastIndex = 0;
  for (let match = OPENING.exec(text); match && blocks < BLOCKS_MAX; match = OPENING.exec(text)) {
    blocks++;
    const closing = `</${match[1]!}>`;
    const end = text.indexOf(closing, OPENING.lastIndex);
    if (end < 0) continue;
    own += text.slice(from, match.index);
    from = OPENING.lastIndex = end + closing.length;
  }
  own = (own + text.slice(from)).trim();
  return own === '' ? text : own;
}
