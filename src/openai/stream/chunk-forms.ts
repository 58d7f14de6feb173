import { textBytes, type OutputCounter } from '../chat/reply/output-bound.ts';
import type { ChunkOutput } from './chunk-output.ts';
import { EventForms, type EventForm, eventForm, OUTPUT } from './event-forms.ts';

/** The form of a provider's chunks, and how the output writes chunks of this form. */
interface ChunkForm extends EventForm {
  readonly written: unknown;
}

/** The forms of chunks that a stream has shown. Chunks of a known form are passed on without being parsed. */
export class KnownForms {
  readonly #forms: EventForms<ChunkForm>;
  readonly #output: ChunkOutput;
  /** The first chunk names the role. Its form is not learned, because usually no other chunk has it. */
  #isFirst = true;

  constructor(counter: OutputCounter, output: ChunkOutput) {
    this.#output = output;
    this.#forms = new EventForms(counter, ({ written }, run, bytes) => output.run(written, run, bytes));
  }

  get events(): number {
    return this.#forms.events;
  }

  take(bytes: Buffer, start: number, end: number, framed: boolean): number {
    return this.#forms.take(bytes, start, end, framed);
  }

  forget(): void {
    this.#forms.forget();
  }

  /** Learns the form of an event. `chunk` is its rewritten form. `learn` changes it, so write it before. */
  learn(text: string, chunk: Record<string, unknown>): void {
    const wasFirst = this.#isFirst;
    this.#isFirst = false;
    const field = wasFirst ? null : varyingField(chunk);
    if (!field) return;
    this.#forms.learn(text, () => {
      const written = this.#output.learn(chunk, field.place);
      const form = written === null ? null : learnForm(text, field.key, field.place);
      return form === null ? null : { ...form, written };
    });
  }
}

/** The one string of a chunk that is expected to vary in the next one; null for a chunk without such a string. */
function varyingField(
  chunk: Record<string, unknown>,
): { key: string; place: (chunk: Record<string, unknown>, value: string) => void } | null {
  const choices = chunk['choices'] as Record<string, unknown>[];
  if (choices.length !== 1) return null;
  const delta = choices[0]!['delta'] as Record<string, unknown>;
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

const deltaOf = (chunk: Record<string, unknown>): Record<string, unknown> =>
  (chunk['choices'] as Record<string, unknown>[])[0]!['delta'] as Record<string, unknown>;
/** The function of the first call. Some providers put null beside it. */
const argumentsOf = (delta: Record<string, unknown>): Record<string, unknown> | undefined =>
  (delta['tool_calls'] as unknown[]).find(
    (call): call is Record<string, unknown> => typeof call === 'object' && call !== null,
  )?.['function'] as Record<string, unknown> | undefined;

const PLACEHOLDER = 'tollgate:the-text-goes-here';
/** So many occurrences of the key are tried before the form counts as not learnable. */
const PLACES_MAX = 8;

/**
 * The form of chunks that are like this one except for one string. `text` is the provider's chunk, `key` the member
 * that has the string. `place` sets the string in the parsed chunk. Returns null if the string cannot be located beyond
 * doubt.
 */
export function learnForm(
  text: string,
  key: string,
  place: (chunk: Record<string, unknown>, value: string) => void,
): EventForm | null {
  const expected = JSON.parse(text) as Record<string, unknown>;
  place(expected, PLACEHOLDER);
  const expectedJson = JSON.stringify(expected);
  const quoted = new RegExp(`"${key}"\\s*:\\s*"`, 'g');
  for (let tries = 0; tries < PLACES_MAX; tries++) {
    const match = quoted.exec(text);
    if (!match) return null;
    const start = quoted.lastIndex;
    const head = text.slice(0, start);
    const tail = text.slice(endOfString(text, start));
    // Only the right place gives the same chunk with the text replaced.
    if (sameJson(head + PLACEHOLDER + tail, expectedJson)) return eventForm([head, tail], [OUTPUT], DATA, false);
  }
  return null;
}

const DATA = 'data: ';

/** The place of the closing quote of a string whose content begins at `from`. */
export function endOfString(text: string, from: number): number {
  let i = from;
  while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i;
}

function sameJson(text: string, expectedJson: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === expectedJson;
  } catch {
    return false;
  }
}
