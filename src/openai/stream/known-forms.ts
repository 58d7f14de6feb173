import type { ByteOutput } from './byte-output.ts';
import { learnTemplate, type ChunkTemplate } from './chunk-template.ts';
import { roomOf, type OutputTally } from './output-tally.ts';
import { rewriteRun } from './rewrite-run.ts';
import { textBytes } from '../reply/message-text.ts';

type Json = Record<string, unknown>;

const TEMPLATES_MAX = 4;
/** Learning costs about ten times a parse, so forms that keep changing are soon left to the parser. */
const LEARN_CREDIT = 8;
const EVENTS_PER_CREDIT = 16;

/** The forms of chunks that a stream has shown: events of a known form are rewritten without being parsed. */
interface KnownForms {
  /** Events that were rewritten. */
  readonly events: number;
  /**
   * Writes the events that begin with the payload at `start` to `output`, as long as their form is known, and counts
   * their texts; returns the place after them. `start`, with nothing written, where the form of the first is unknown
   * or its text does not fit into the budget: then it has to be parsed. `framed`: see rewriteRun.
   */
  rewrite(bytes: Buffer, start: number, end: number, framed: boolean, output: ByteOutput): number;
  /** Learns the form of an event. `chunk` is its rewritten form, and is changed: write it first. */
  learn(text: string, chunk: Json): void;
  forget(): void;
}

export function createKnownForms(tally: OutputTally): KnownForms {
  const templates: ChunkTemplate[] = [];
  let credit = LEARN_CREDIT;
  /** The first chunk names the role, and is mostly the only one of its form. */
  let isFirst = true;
  let events = 0;
  let latest: ChunkTemplate | null = null;
  /** Events of the latest form in a row. As many again are looked for at once: forms that take turns cost no more. */
  let row = 0;

  function rewriteAs(
    template: ChunkTemplate,
    bytes: Buffer,
    start: number,
    end: number,
    framed: boolean,
    output: ByteOutput,
  ): number {
    if (template !== latest) row = 0;
    const room = roomOf(tally);
    let run = rewriteRun(template, bytes, start, end, framed, framed ? 1 + row : 1, room, output);
    if (run === null && row > 0) {
      row = 0;
      run = rewriteRun(template, bytes, start, end, framed, 1, room, output);
    }
    if (run === null) return start;
    latest = template;
    row += run.events;
    tally.bytes += run.bytes;
    tally.discount += run.discount;
    const earned = Math.floor((events + run.events) / EVENTS_PER_CREDIT) - Math.floor(events / EVENTS_PER_CREDIT);
    credit = Math.min(LEARN_CREDIT, credit + earned);
    events += run.events;
    return run.end;
  }

  return {
    get events() {
      return events;
    },
    rewrite(bytes, start, end, framed, output) {
      for (const template of templates) {
        const after = rewriteAs(template, bytes, start, end, framed, output);
        if (after > start) return after;
      }
      return start;
    },
    learn(text, chunk) {
      const wasFirst = isFirst;
      isFirst = false;
      if (credit === 0 || wasFirst) return;
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
