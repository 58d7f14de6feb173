import { isUtf8 } from 'node:buffer';
import { mayBeRun, NO_RUN_BYTES, runDiscount } from '../caps/output-bound.ts';
import type { ByteOutput } from '../stream/byte-output.ts';
import { type OutputTally, roomOf } from '../stream/output-tally.ts';

/** Members whose values differ from event to event, with the texts among them that are output. */
const SLOT = /"(sequence_number)":(?=\d)|"(delta|text|thinking|partial_json|obfuscation)":"/g;
const NO_OUTPUT: ReadonlySet<string> = new Set(['sequence_number', 'obfuscation']);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
const ESCAPES = new Uint8Array(256);
for (const escape of '"\\/bfnrt') ESCAPES[escape.charCodeAt(0)] = 1;

const FORMS_MAX = 4;
/** Learning costs more than a parse, so forms that keep changing are left to the parser. */
const LEARNED_MAX = 8;
const EVENTS_PER_FORM = 16;
/** A longer event is parsed. */
const EVENT_CHARS_MAX = 4096;
/** Bytes that are compared at once. */
const RUN_BYTES_MAX = 32 * 1024;
const BLANK_LINE = 2;
/** A native call pays for longer parts alone. */
const SHORT_PART_BYTES = 24;

interface Slot {
  readonly isNumber: boolean;
  readonly isOutput: boolean;
}

/** The bytes of an event around what differs, and what stands between them. */
interface Form {
  /** Up to the first slot. */
  readonly head: Buffer;
  readonly slots: readonly Slot[];
  /** Behind each slot; behind the last one with the blank line. */
  readonly parts: readonly Buffer[];
  /** The line before the data. */
  readonly line: Buffer;
  /** From the last slot of an event to the first one of the next. */
  readonly between: Buffer;
}

/** Events of a delta in a form that was seen before: they are valid, and pass without being parsed. */
interface EventForms {
  /**
   * Writes the events that begin with the data at `start` to the output, as long as their form is known and their texts
   * fit, and counts those. Returns the place after them; `start` where it takes none. `framed`: the events stand in
   * `bytes` as on the wire. Else the bytes up to `end` are the data of one.
   */
  pass(bytes: Buffer, start: number, end: number, framed: boolean): number;
  /** The last number in the events that passed; null before one. */
  readonly sequence: number | null;
  /** Learns the form of an event that JSON.parse accepts. */
  learn(type: string, text: string): void;
}

/** The bytes that events of one form would have. All streams share them, as events are read in one go. */
const expected = Buffer.allocUnsafeSlow(2 * RUN_BYTES_MAX);
let expectedLength = 0;

function expect(part: Buffer): void {
  const { length } = part;
  if (length > SHORT_PART_BYTES) expected.set(part, expectedLength);
  else for (let i = 0; i < length; i++) expected[expectedLength + i] = part[i]!;
  expectedLength += length;
}

/** The parts that differ from event to event. One object for all. */
const slot = {
  /** All bytes of texts by OR: from 0x80 up where they are not ASCII. */
  high: 0,
  escapes: 0,
  /** The place behind the inside of a JSON string; -1 for one that is not valid, or has an escape of digits. */
  textEnd(bytes: Buffer, start: number, end: number): number {
    let { high } = this;
    let escapes = 0;
    let to = expectedLength;
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!;
      if (byte === QUOTE) {
        this.high = high;
        this.escapes = escapes;
        expectedLength = to;
        return i;
      }
      if (byte < 0x20) return -1;
      high |= byte;
      expected[to++] = byte;
      if (byte !== BACKSLASH) continue;
      const escaped = bytes[++i]!;
      if (ESCAPES[escaped] !== 1) return -1;
      expected[to++] = escaped;
      escapes++;
    }
    return -1;
  },
  /** The place behind digits; -1 without one, and for a zero before others. */
  digitsEnd(bytes: Buffer, start: number, end: number): number {
    let i = start;
    for (; i < end && bytes[i]! >= ZERO && bytes[i]! <= ZERO + 9; i++) expected[expectedLength++] = bytes[i]!;
    return i === start || (i - start > 1 && bytes[start] === ZERO) ? -1 : i;
  },
};

export function createEventForms(tally: OutputTally, output: ByteOutput): EventForms {
  const forms: Form[] = [];
  let sequence: number | null = null;
  let latest: Form | null = null;
  /** Events of the latest form in a row. As many again are looked for at once. */
  let row = 0;
  let passed = 0;
  let learned = 0;

  /**
   * One native call compares all events with the bytes that their form has around their texts. Where it fails nothing
   * is taken.
   */
  function passRun(form: Form, bytes: Buffer, start: number, end: number, framed: boolean, eventsMax: number): number {
    const { head, slots, parts, between, line } = form;
    const limit = Math.min(end, start + RUN_BYTES_MAX);
    const room = roomOf(tally);
    const frame = framed ? 0 : BLANK_LINE;
    const tail = parts[slots.length - 1]!;
    let at = start + head.length;
    if (at >= limit || !endsAlike(head, bytes, at)) return start;
    expectedLength = 0;
    expect(head);
    slot.high = 0;
    let events = 0;
    let after = start;
    let text = 0;
    let discount = 0;
    let numberStart = 0;
    let numberEnd = 0;
    for (let more = true; more;) {
      let said = 0;
      let less = 0;
      let digits = 0;
      let digitsEnd = 0;
      for (let i = 0; i < slots.length; i++) {
        const { isNumber, isOutput } = slots[i]!;
        const from = at;
        at = isNumber ? slot.digitsEnd(bytes, at, limit) : slot.textEnd(bytes, at, limit);
        if (at === -1) break;
        if (isNumber) {
          digits = from;
          digitsEnd = at;
        } else if (isOutput) {
          const count = at - from - slot.escapes;
          said += count;
          if (count > NO_RUN_BYTES && mayBeRun(bytes, from, at)) less += runDiscount(bytes, from, at, count);
        }
        if (i + 1 === slots.length) break;
        expect(parts[i]!);
        at += parts[i]!.length;
      }
      const taken = at + tail.length - frame;
      if (at === -1 || taken > limit || text + said - discount - less > room) break;
      after = taken;
      text += said;
      discount += less;
      numberStart = digits;
      numberEnd = digitsEnd;
      const next = at + between.length;
      more = ++events < eventsMax && next < limit && endsAlike(between, bytes, next);
      expect(more ? between : tail);
      at = next;
    }
    // What stands around the texts is valid, and their quotes are ASCII.
    if (
      events === 0 ||
      (!framed && after !== end) ||
      bytes.compare(expected, 0, after - start, start, after) !== 0 ||
      (slot.high >= 0x80 && !isUtf8(bytes.subarray(start, after)))
    )
      return start;
    output.write(line);
    output.write(bytes.subarray(start, after));
    if (!framed) output.write(BLANK);
    tally.bytes += text;
    tally.discount += discount;
    if (numberEnd > 0) sequence = Number(bytes.toString('latin1', numberStart, numberEnd));
    row += events;
    passed += events;
    return after;
  }

  return {
    get sequence() {
      return sequence;
    },
    pass(bytes, start, end, framed) {
      for (let i = 0; i < forms.length; i++) {
        const form = forms[i]!;
        if (form !== latest) row = 0;
        let after = passRun(form, bytes, start, end, framed, framed ? 1 + row : 1);
        if (after === start && row > 0) {
          row = 0;
          after = passRun(form, bytes, start, end, framed, 1);
        }
        if (after === start) continue;
        latest = form;
        if (i > 0) forms.unshift(...forms.splice(i, 1));
        return after;
      }
      return start;
    },
    learn(type, text) {
      if (text.length > EVENT_CHARS_MAX || learned >= LEARNED_MAX + passed / EVENTS_PER_FORM) return;
      // Also where nothing is learned: the search costs as much.
      learned++;
      const form = formOf(text, `event: ${type}\ndata: `);
      if (form === null) return;
      forms.unshift(form);
      forms.length = Math.min(forms.length, FORMS_MAX);
    },
  };
}

const BLANK = Buffer.from('\n\n');

/** A cheap look at the last bytes. */
function endsAlike(part: Buffer, bytes: Buffer, end: number): boolean {
  const { length } = part;
  return (
    bytes[end - 1] === part[length - 1] && bytes[end - 2] === part[length - 2] && bytes[end - 3] === part[length - 3]
  );
}

/** null for an event without output. */
function formOf(text: string, line: string): Form | null {
  const between: string[] = [];
  const slots: Slot[] = [];
  let from = 0;
  SLOT.lastIndex = 0;
  for (let found = SLOT.exec(text); found !== null; found = SLOT.exec(text)) {
    const [, number, string] = found;
    const start = SLOT.lastIndex;
    between.push(text.slice(from, start));
    slots.push({ isNumber: number !== undefined, isOutput: !NO_OUTPUT.has((number ?? string)!) });
    from = number === undefined ? endOfText(text, start) : endOfDigits(text, start);
    SLOT.lastIndex = from;
  }
  if (!slots.some(({ isOutput }) => isOutput)) return null;
  const tail = `${text.slice(from)}\n\n`;
  const [head, ...parts] = [...between, tail].map((part) => Buffer.from(part)) as [Buffer, ...Buffer[]];
  return { head, slots, parts, line: Buffer.from(line), between: Buffer.from(tail + line + between[0]!) };
}

function endOfText(text: string, from: number): number {
  let i = from;
  while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i;
}

function endOfDigits(text: string, from: number): number {
  let i = from;
  while (text[i]! >= '0' && text[i]! <= '9') i++;
  return i;
}
