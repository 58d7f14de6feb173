import type { ByteOutput } from './byte-output.ts';
import { applyTemplate, learnTemplate, type ChunkTemplate } from './chunk-template.ts';
import { mayBeRun, NO_RUN_BYTES, runDiscount } from '../caps/output-bound.ts';
import { roomOf, type OutputTally } from './output-tally.ts';
import { textBytes } from '../reply/message-text.ts';

type Json = Record<string, unknown>;

const TEMPLATES_MAX = 4;
/** Learning costs about ten times a parse, so forms that keep changing are soon left to the parser. */
const LEARN_CREDIT = 8;
const FAST_EVENTS_PER_CREDIT = 16;

/** The forms of chunks that a stream has shown: events of a known form are rewritten without being parsed. */
interface KnownForms {
  /**
   * Writes the event to `output` and counts its text. False, with nothing written, when its form is unknown or its
   * text does not fit into the budget: then the event has to be parsed.
   */
  rewrite(bytes: Buffer, start: number, end: number, output: ByteOutput): boolean;
  /** Learns the form of an event. `chunk` is its rewritten form, and is changed: write it first. */
  learn(text: string, chunk: Json): void;
  forget(): void;
}

export function createKnownForms(tally: OutputTally): KnownForms {
  const templates: ChunkTemplate[] = [];
  let credit = LEARN_CREDIT;
  let fastEvents = 0;

  return {
    rewrite(bytes, start, end, output) {
      for (const template of templates) {
        const at = output.length;
        const count = applyTemplate(template, bytes, start, end, output);
        if (count === -1) continue;
        const less = count > NO_RUN_BYTES ? discountOf(template, bytes, start, end, count) : 0;
        if (count - less > roomOf(tally)) {
          output.length = at;
          return false;
        }
        tally.bytes += count;
        tally.discount += less;
        if (++fastEvents % FAST_EVENTS_PER_CREDIT === 0 && credit < LEARN_CREDIT) credit++;
        return true;
      }
      return false;
    },
    learn(text, chunk) {
      if (credit === 0) return;
      const field = varyingField(chunk);
      if (!field) return;
      credit--;
      const template = learnTemplate(text, field.key, field.place, (placeholder) => {
        field.place(chunk, placeholder);
        return JSON.stringify(chunk);
      });
      if (template && templates.unshift(template) > TEMPLATES_MAX) templates.pop();
    },
    forget() {
      templates.length = 0;
    },
  };
}

/** The discount for runs in the text of an event of this form. */
function discountOf(
  { givenHead, givenTail }: ChunkTemplate,
  bytes: Buffer,
  start: number,
  end: number,
  count: number,
): number {
  const [from, to] = [start + givenHead.length, end - givenTail.length];
  return mayBeRun(bytes, from, to) ? runDiscount(bytes, from, to, count) : 0;
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
  // Text beside the varying one would not be counted.
  if (key === undefined || textBytes({ ...delta, [key]: '' }) > 0) return null;
  return { key, place: (target, value) => void (deltaOf(target)[key] = value) };
}

const deltaOf = (chunk: Json): Json => (chunk['choices'] as Json[])[0]!['delta'] as Json;
const argumentsOf = (delta: Json): Json | undefined =>
  (delta['tool_calls'] as Json[])[0]?.['function'] as Json | undefined;
