import { textBytes, type OutputCounter } from '../chat/output-bound.ts';
import type { ByteOutput } from './byte-output.ts';
import { learnTemplate, writeTexts, type ChunkTemplate } from './chunk-template.ts';
import { EventForms } from './event-forms.ts';

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

  /** See EventForms. */
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
