/**
 * The form of a chunk whose text alone varies: nearly all chunks of a stream are byte for byte the same but for one
 * string, so that they can be checked by comparison and rewritten by splicing, without being parsed.
 */
export interface ChunkTemplate {
  readonly given: ChunkForm;
  readonly ours: ChunkForm;
}

/** Chunks of one form, as bytes around their texts. */
interface ChunkForm {
  /** Of the first chunk, up to its text. The provider's is a payload; ours has its `data: `. */
  readonly head: Buffer;
  /** From the end of its text, with its blank line. */
  readonly tail: Buffer;
  /** From the end of its text to the text of the next chunk. */
  readonly between: Buffer;
}

/** Bytes of the blank line with which an event ends. */
export const BLANK_LINE = 2;

const PLACEHOLDER = 'tollgate:the-text-goes-here';
/** A form longer than this is not learned: learning parses it up to nine times, in one turn of the event loop. */
const FORM_CHARS_MAX = 4096;

/** Places that a key may be tried at before the form counts as not learnable. */
const PLACES_MAX = 8;

/**
 * Learns the template of a chunk. `text` is the provider's, `place` sets the varying string in the parsed chunk,
 * and `rendered` is our rewriting of the chunk with PLACEHOLDER as that string. null when the string cannot be
 * located beyond doubt.
 */
export function learnTemplate(
  text: string,
  key: string,
  place: (chunk: Record<string, unknown>, value: string) => void,
  render: (placeholder: string) => string,
): ChunkTemplate | null {
  if (text.length > FORM_CHARS_MAX) return null;
  const expected = JSON.parse(text) as Record<string, unknown>;
  place(expected, PLACEHOLDER);
  const wanted = JSON.stringify(expected);
  const ours = render(PLACEHOLDER).split(PLACEHOLDER);
  if (ours.length !== 2) return null;
  const quoted = new RegExp(`"${key}"\\s*:\\s*"`, 'g');
  for (let tries = 0; tries < PLACES_MAX; tries++) {
    const found = quoted.exec(text);
    if (!found) return null;
    const start = quoted.lastIndex;
    const end = endOfString(text, start);
    const head = text.slice(0, start);
    const tail = text.slice(end);
    // Only the right place gives the same chunk with the text replaced.
    if (sameJson(head + PLACEHOLDER + tail, wanted)) {
      const ourHead = `data: ${ours[0]!}`;
      return {
        given: formOf(head, `${tail}\n\n`, `data: ${head}`),
        ours: formOf(ourHead, `${ours[1]!}\n\n`, ourHead),
      };
    }
  }
  return null;
}

/** One piece of memory for each: an open stream keeps its forms. */
function formOf(head: string, tail: string, nextHead: string): ChunkForm {
  const between = Buffer.from(tail + nextHead);
  const headBytes = Buffer.byteLength(head);
  return {
    head: between.subarray(between.length - headBytes),
    tail: between.subarray(0, Buffer.byteLength(tail)),
    between,
  };
}

function endOfString(text: string, from: number): number {
  let i = from;
  while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i;
}

function sameJson(text: string, wanted: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === wanted;
  } catch {
    return false;
  }
}
