/** At most this many blocks are removed. */
const BLOCKS_MAX = 100;
const OPENING = /<([a-z][a-z_-]{2,40})>/g;

/**
 * Returns what the user wrote, without the blocks that coding agents add, such as `<system-reminder>…` and
 * `<environment_context>…`. Returns the whole text if it consists only of such blocks.
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
