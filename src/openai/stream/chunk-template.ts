import type { ByteOutput } from './byte-output.ts';
import { type EventForm, eventForm, type FoundRun, OUTPUT } from './event-runs.ts';

/**
 * The form of chunks in which only one text varies, and our rewriting of them. Such chunks are rewritten by splicing
 * the text into our bytes.
 */
export interface ChunkTemplate extends EventForm {
  /** Our rewritten form. */
  readonly ours: Pick<EventForm, 'head' | 'parts' | 'between'>;
}

const DATA = 'data: ';
const PLACEHOLDER = 'tollgate:the-text-goes-here';

/** So many occurrences of the key are tried before the form counts as not learnable. */
const PLACES_MAX = 8;

/**
 * Learns the template of a chunk. `text` is the provider's chunk. `place` sets the varying string in the parsed
 * chunk. `render` gives our rewriting of the chunk with PLACEHOLDER as that string. Returns null if the string
 * cannot be located beyond doubt.
 */
export function learnTemplate(
  text: string,
  key: string,
  place: (chunk: Record<string, unknown>, value: string) => void,
  render: (placeholder: string) => string,
): ChunkTemplate | null {
  const expected = JSON.parse(text) as Record<string, unknown>;
  place(expected, PLACEHOLDER);
  const wanted = JSON.stringify(expected);
  const ours = `${DATA}${render(PLACEHOLDER)}`.split(PLACEHOLDER);
  if (ours.length !== 2) return null;
  const quoted = new RegExp(`"${key}"\\s*:\\s*"`, 'g');
  for (let tries = 0; tries < PLACES_MAX; tries++) {
    const found = quoted.exec(text);
    if (!found) return null;
    const start = quoted.lastIndex;
    const head = text.slice(0, start);
    const tail = text.slice(endOfString(text, start));
    // Only the right place gives the same chunk with the text replaced.
    if (sameJson(head + PLACEHOLDER + tail, wanted))
      return { ...textForm(head, tail), ours: eventForm(ours, [OUTPUT], '', false) };
  }
  return null;
}

/**
 * The form of chunks by the text before and after their one varying text. That text must be written as
 * JSON.stringify writes it.
 */
export const textForm = (head: string, tail: string): EventForm => eventForm([head, tail], [OUTPUT], DATA, false);

/** Texts up to this length are copied byte by byte. */
const SHORT_TEXT_BYTES = 32;

/** Writes the texts of a run with our bytes around them. */
export function writeTexts(
  { head, parts: [tail], between }: ChunkTemplate['ours'],
  { events, places, length }: FoundRun,
  bytes: Buffer,
  output: ByteOutput,
): void {
  const target = output.reserve(head.length + length + (events - 1) * between.length + tail!.length);
  let to = output.length;
  target.set(head, to);
  to += head.length;
  for (let i = 0; i < events; i++) {
    if (i > 0) {
      target.set(between, to);
      to += between.length;
    }
    const end = places[2 * i + 1]!;
    let from = places[2 * i]!;
    if (end - from > SHORT_TEXT_BYTES) to += bytes.copy(target, to, from, end);
    else while (from < end) target[to++] = bytes[from++]!;
  }
  target.set(tail!, to);
  output.length = to + tail!.length;
}

/** The place of the closing quote of a string whose content begins at `from`. */
export function endOfString(text: string, from: number): number {
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
