import type { ByteOutput } from '../stream/byte-output.ts';
import { endOfString } from '../stream/chunk-template.ts';
import { EventForms } from '../stream/event-forms.ts';
import { type EventForm, eventForm, type FoundRun } from '../stream/event-runs.ts';
import type { OutputCounter } from '../chat/output-bound.ts';

/** Members whose values differ from event to event. Those in NO_OUTPUT are not output. */
const SLOT = /"(sequence_number)":(?=\d)|"(delta|text|thinking|partial_json|obfuscation)":"/g;
const NO_OUTPUT: ReadonlySet<string> = new Set(['sequence_number', 'obfuscation']);

interface NativeForm extends EventForm {
  /** The line before the data. */
  readonly line: Buffer;
}

/** Delta events in a form that was seen before. They are valid, and pass unchanged. */
export interface NativeForms {
  /** See EventForms. */
  take(bytes: Buffer, start: number, end: number, framed: boolean): number;
  /** The last number in the events that passed; null before one. */
  readonly sequence: number | null;
  /** Learns the form of an event that JSON.parse accepts. */
  learn(type: string, text: string): void;
}

export function createNativeForms(counter: OutputCounter, output: ByteOutput): NativeForms {
  return new Forms(counter, output);
}

class Forms implements NativeForms {
  sequence: number | null = null;
  readonly #output: ByteOutput;
  readonly #forms: EventForms<NativeForm>;

  constructor(counter: OutputCounter, output: ByteOutput) {
    this.#output = output;
    this.#forms = new EventForms<NativeForm>(counter, (form, run, bytes, start, framed) =>
      this.#pass(form, run, bytes, start, framed),
    );
  }

  take(bytes: Buffer, start: number, end: number, framed: boolean): number {
    return this.#forms.take(bytes, start, end, framed);
  }

  learn(type: string, text: string): void {
    this.#forms.learn(text, () => formOf(text, `event: ${type}\ndata: `));
  }

  #pass({ line }: NativeForm, run: FoundRun, bytes: Buffer, start: number, framed: boolean): void {
    this.#output.write(line);
    this.#output.write(bytes.subarray(start, run.end));
    if (!framed) this.#output.write(BLANK);
    if (run.numberEnd > 0) this.sequence = Number(bytes.toString('latin1', run.numberStart, run.numberEnd));
  }
}

const BLANK = Buffer.from('\n\n');

/** null for an event without output. */
function formOf(text: string, line: string): NativeForm | null {
  const around: string[] = [];
  const slots: EventForm['slots'][number][] = [];
  let from = 0;
  SLOT.lastIndex = 0;
  for (let found = SLOT.exec(text); found !== null; found = SLOT.exec(text)) {
    const [, number, string] = found;
    const start = SLOT.lastIndex;
    around.push(text.slice(from, start));
    slots.push({ isNumber: number !== undefined, isOutput: !NO_OUTPUT.has((number ?? string)!) });
    from = number === undefined ? endOfString(text, start) : endOfDigits(text, start);
    SLOT.lastIndex = from;
  }
  if (!slots.some(({ isOutput }) => isOutput)) return null;
  return { ...eventForm([...around, text.slice(from)], slots, line, true), line: Buffer.from(line) };
}

function endOfDigits(text: string, from: number): number {
  let i = from;
  while (text[i]! >= '0' && text[i]! <= '9') i++;
  return i;
}
