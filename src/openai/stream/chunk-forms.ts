import { textBytes, type OutputCounter } from '../chat/output-bound.ts';
import { EventForms, type EventForm, eventForm, type FoundRun, OUTPUT } from './event-forms.ts';

type Json = Record<string, unknown>;

/** The forms of chunks that a stream has shown. Chunks of a known form are rewritten without being parsed. */
export class KnownForms {
  readonly #forms: EventForms<ChunkTemplate>;
  /** The first chunk names the role. Its form is not learned, because usually no other chunk has it. */
  #isFirst = true;

  constructor(counter: OutputCounter, output: ByteOutput) {
    this.#forms = new EventForms(counter, ({ ours }, run, bytes) => writeTexts(ours, run, bytes, output));
  }

  /** Events that were taken. */
  get events(): number {
    return this.#forms.events;
  }

  /** Rewrites the events of a known form: see EventForms. */
  take(bytes: Buffer, start: number, end: number, framed: boolean): number {
    return this.#forms.take(bytes, start, end, framed);
  }

  forget(): void {
    this.#forms.forget();
  }

  /** Learns the form of an event. `chunk` is its rewritten form. `learn` changes it, so write it before. */
  learn(text: string, chunk: Json): void {
    const wasFirst = this.#isFirst;
    this.#isFirst = false;
    const field = wasFirst ? null : varyingField(chunk);
    if (!field) return;
    this.#forms.learn(text, () =>
      learnTemplate(text, field.key, field.place, (placeholder) => {
        field.place(chunk, placeholder);
        return JSON.stringify(chunk);
      }),
    );
  }
}

/** The one string of a chunk that is expected to vary in the next one; null for a chunk without such a string. */
function varyingField(chunk: Json): { key: string; place: (chunk: Json, value: string) => void } | null {
  const choices = chunk['choices'] as Json[];
  if (choices.length !== 1) return null;
  const delta = choices[0]!['delta'] as Json;
  const calls = delta['tool_calls'];
  if (calls !== undefined) {
    if (!Array.isArray(calls) || calls.length !== 1 || typeof argumentsOf(delta)?.['arguments'] !== 'string')
      return null;
    if (textBytes({ ...delta, tool_calls: [] }) > 0) return null;
    return { key: 'arguments', place: (target, value) => void (argumentsOf(deltaOf(target))!['arguments'] = value) };
  }
  const keys = ['content', 'reasoning_content', 'reasoning'].filter((key) => typeof delta[key] === 'string');
  const key = keys.length === 1 ? keys[0] : keys.find((name) => delta[name] !== '');
  // Other text beside the varying one would not be counted.
  if (key === undefined || textBytes({ ...delta, [key]: '' }) > 0) return null;
  return { key, place: (target, value) => void (deltaOf(target)[key] = value) };
}

const deltaOf = (chunk: Json): Json => (chunk['choices'] as Json[])[0]!['delta'] as Json;
/** The function of the first call. Some providers put null beside it. */
const argumentsOf = (delta: Json): Json | undefined =>
  (delta['tool_calls'] as unknown[]).find((call): call is Json => typeof call === 'object' && call !== null)?.[
    'function'
  ] as Json | undefined;

/**
 * The form of chunks in which only one text varies, and our rewriting of them. Such chunks are rewritten by splicing
 * the text into our bytes.
 */
interface ChunkTemplate extends EventForm {
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

/** Collects the output for one incoming chunk in one buffer. */
export interface ByteOutput {
  length: number;
  /** Estimated bytes of the next take, so that the buffer is allocated once. */
  expected: number;
  /** The buffer, with room for `bytes` more after `length`. */
  reserve(bytes: number): Buffer;
  write(bytes: Buffer): void;
  writeText(text: string): void;
  /** The bytes since the last take; null for none. */
  take(): Buffer | null;
}

export function createByteOutput(): ByteOutput {
  let buffer: Buffer | null = null;
  return {
    length: 0,
    expected: 0,
    reserve(bytes) {
      const needed = this.length + bytes;
      if (buffer === null) buffer = Buffer.allocUnsafe(Math.max(needed, this.expected));
      else if (buffer.length < needed) {
        const grown = Buffer.allocUnsafe(Math.max(needed, buffer.length * 2));
        buffer.copy(grown, 0, 0, this.length);
        buffer = grown;
      }
      return buffer;
    },
    write(bytes) {
      this.reserve(bytes.length).set(bytes, this.length);
      this.length += bytes.length;
    },
    writeText(text) {
      const bytes = Buffer.byteLength(text);
      this.length += this.reserve(bytes).write(text, this.length);
    },
    take() {
      if (buffer === null || this.length === 0) return null;
      const taken = buffer.subarray(0, this.length);
      buffer = null;
      this.length = 0;
      return taken;
    },
  };
}
