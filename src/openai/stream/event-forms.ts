import { isUtf8 } from 'node:buffer';
import { roomOf, type OutputCounter, mayBeRun, NO_RUN_BYTES, runDiscount } from '../chat/reply/output-bound.ts';

const FORMS_MAX = 4;
/**
 * Learning costs about ten times a parse. So for a stream whose forms keep changing, the gateway soon stops learning
 * and only parses.
 */
const LEARN_CREDIT = 8;
const EVENTS_PER_CREDIT = 16;
/**
 * The form of a longer event is not learned, because learning may parse the event up to nine times in one turn of
 * the event loop.
 */
const EVENT_CHARS_MAX = 4096;

type Write<F extends EventForm> = (form: F, run: FoundRun, bytes: Buffer, start: number, framed: boolean) => void;

/** The forms of events that a stream has shown. Events of a known form are not parsed. */
export class EventForms<F extends EventForm> {
  events = 0;
  readonly #counter: OutputCounter;
  readonly #write: Write<F>;
  readonly #forms: F[] = [];
  #credit = LEARN_CREDIT;
  #latest: F | null = null;
  /**
   * How many events in a row had the latest form. The next search looks for as many again at once. So forms that
   * alternate cost no more.
   */
  #row = 0;

  /** `write` writes the run that begins at `start` of `bytes`. */
  constructor(counter: OutputCounter, write: Write<F>) {
    this.#counter = counter;
    this.#write = write;
  }

  /**
   * Writes and counts the events that begin with the data at `start`, as long as they have one known form and their
   * texts fit into the budget. Returns the place after them. If the first event has to be parsed, it writes nothing
   * and returns `start`. `framed`: see findRun.
   */
  take(bytes: Buffer, start: number, end: number, framed: boolean): number {
    const forms = this.#forms;
    for (let i = 0; i < forms.length; i++) {
      const form = forms[i]!;
      const run = this.#find(form, bytes, start, end, framed);
      if (run === null) continue;
      this.#write(form, run, bytes, start, framed);
      this.#latest = form;
      if (i > 0) forms.unshift(...forms.splice(i, 1));
      this.#row += run.events;
      this.#counter.bytes += run.bytes;
      this.#counter.discount += run.discount;
      const events = this.events + run.events;
      const earned = Math.floor(events / EVENTS_PER_CREDIT) - Math.floor(this.events / EVENTS_PER_CREDIT);
      this.#credit = Math.min(LEARN_CREDIT, this.#credit + earned);
      this.events = events;
      return run.end;
    }
    return start;
  }

  /** Learns the form of an event that JSON.parse accepts. `formOf` returns null if the form cannot be learned. */
  learn(text: string, formOf: () => F | null): void {
    if (text.length > EVENT_CHARS_MAX || this.#credit === 0) return;
    // Also if nothing is learned, because the search costs as much.
    this.#credit--;
    const form = formOf();
    if (form !== null && this.#forms.unshift(form) > FORMS_MAX) this.#forms.pop();
  }

  forget(): void {
    this.#forms.length = 0;
  }

  #find(form: F, bytes: Buffer, start: number, end: number, framed: boolean): FoundRun | null {
    if (form !== this.#latest) this.#row = 0;
    const room = roomOf(this.#counter);
    const row = this.#row;
    const eventRun = findRun(form, bytes, start, end, framed, framed ? 1 + row : 1, room);
    if (eventRun !== null || row === 0) return eventRun;
    this.#row = 0;
    return findRun(form, bytes, start, end, framed, 1, room);
  }
}

/** A value that differs from event to event: the inside of a string, or a whole number. */
interface Slot {
  readonly isNumber: boolean;
  /** The value is output of the model, so it counts towards the budget. */
  readonly isOutput: boolean;
}

export const OUTPUT: Slot = { isNumber: false, isOutput: true };

/**
 * The form of events that are byte for byte the same, except for their slots. A comparison recognises them, without
 * parsing.
 */
export interface EventForm {
  /** The data up to the first slot. */
  readonly head: Buffer;
  readonly slots: readonly Slot[];
  /** The bytes after each slot. Those after the last slot include the blank line. */
  readonly parts: readonly Buffer[];
  /** The bytes from the last slot of an event to the first slot of the next event. */
  readonly between: Buffer;
  /** A slash in a text may be escaped, although JSON.stringify does not escape it. */
  readonly escapedSlash: boolean;
}

interface EventRun {
  events: number;
  /** The place after them. */
  end: number;
  /** Bytes of output. An escape counts as one byte. */
  bytes: number;
  discount: number;
  /** The places at which the last string of each event begins and ends. */
  readonly places: Int32Array;
  /** Bytes of those strings. */
  length: number;
  /** The places at which the number of the last event begins and ends; 0 without a number. */
  numberStart: number;
  numberEnd: number;
}

export type FoundRun = Readonly<EventRun>;

/** A longer event goes to the parser. */
const RUN_BYTES_MAX = 32 * 1024;
const EVENTS_MAX = 1_024;
const BLANK_LINE = 2;
/** A longer part is copied by a native call. */
const SHORT_PART_BYTES = 24;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
/** The characters that may follow a backslash. A text with another escape goes to the parser. */
const escapesOf = (signs: string) =>
  Uint8Array.from({ length: 256 }, (_one, byte) => Number(signs.includes(String.fromCharCode(byte))));
const ESCAPES = escapesOf('"\\bfnrt');
const ESCAPES_AND_SLASH = escapesOf('"\\bfnrt/');

/** Makes a form of the texts around its slots. `line`: the text before the data on the wire. */
export function eventForm(
  texts: readonly string[],
  slots: readonly Slot[],
  line: string,
  escapedSlash: boolean,
): EventForm {
  const head = texts[0]!;
  const tail = `${texts.at(-1)!}\n\n`;
  // All parts share one allocation, because an open stream keeps its forms.
  const between = Buffer.from(tail + line + head);
  return {
    head: between.subarray(between.length - Buffer.byteLength(head)),
    slots,
    parts: [...texts.slice(1, -1).map((text) => Buffer.from(text)), between.subarray(0, Buffer.byteLength(tail))],
    between,
    escapedSlash,
  };
}

/**
 * The bytes that a run has if all its events have the form. One native call compares all of them, because one call
 * for each event took half of the time. All streams share this memory and `run`, because a run is read without
 * interruption.
 */
const expected = Buffer.allocUnsafeSlow(2 * RUN_BYTES_MAX);
let expectedLength = 0;
const run: EventRun = {
  events: 0,
  end: 0,
  bytes: 0,
  discount: 0,
  places: new Int32Array(2 * EVENTS_MAX),
  length: 0,
  numberStart: 0,
  numberEnd: 0,
};

/**
 * Finds the events that begin with the data at `start` and have the form: at most `eventsMax` events, with at most
 * `room` bytes of output that count. The run ends before the first event that has another form or is incomplete. The
 * result is valid until the next call.
 *
 * Returns null if the first event has another form or is incomplete. Also returns null if a later event looked as if
 * it had the form but has not. Then call again for the first event alone.
 *
 * `framed`: `bytes` holds events as on the wire. Otherwise the bytes up to `end` are the data of one event.
 */
export function findRun(
  { head, slots, parts, between, escapedSlash }: EventForm,
  bytes: Buffer,
  start: number,
  end: number,
  framed: boolean,
  eventsMax: number,
  room: number,
): FoundRun | null {
  const limit = Math.min(end, start + RUN_BYTES_MAX);
  let at = start + head.length;
  if (at >= limit || !endsAlike(head, bytes, at)) return null;
  const last = slots.length - 1;
  const tail = parts[last]!;
  const tailLength = framed ? tail.length : tail.length - BLANK_LINE;
  const most = Math.min(eventsMax, EVENTS_MAX);
  const { places } = run;
  const escapes = escapedSlash ? ESCAPES_AND_SLASH : ESCAPES;
  expectedLength = 0;
  expect(head);
  slot.high = slot.start = slot.end = 0;
  let after = start;
  let events = 0;
  let counted = 0;
  let discount = 0;
  let length = 0;
  for (let more = true; more;) {
    let saidBytes = 0;
    let less = 0;
    for (let i = 0; ; i++) {
      const { isNumber, isOutput } = slots[i]!;
      const from = at;
      at = isNumber ? slot.digitsEnd(bytes, at, limit) : slot.textEnd(bytes, at, limit, escapes);
      if (at === -1) break;
      if (isNumber) {
        slot.start = from;
        slot.end = at;
      } else {
        places[2 * events] = from;
        places[2 * events + 1] = at;
        if (isOutput) {
          const count = at - from - slot.escapes;
          saidBytes += count;
          if (count > NO_RUN_BYTES && mayBeRun(bytes, from, at)) less += runDiscount(bytes, from, at, count);
        }
      }
      if (i === last) break;
      expect(parts[i]!);
      at += parts[i]!.length;
    }
    if (at === -1 || at + tailLength > limit || counted + saidBytes - discount - less > room) break;
    length += places[2 * events + 1]! - places[2 * events]!;
    counted += saidBytes;
    discount += less;
    run.numberStart = slot.start;
    run.numberEnd = slot.end;
    events++;
    after = at + tailLength;
    at += between.length;
    more = events < most && at < limit && endsAlike(between, bytes, at);
    expect(more ? between : tail);
  }
  if (
    events === 0 ||
    (!framed && after !== end) ||
    bytes.compare(expected, 0, after - start, start, after) !== 0 ||
    // The bytes around the slots are valid UTF-8, and quotes are ASCII. So if the whole is valid, all texts are.
    (slot.high >= 0x80 && !isUtf8(bytes.subarray(start, after)))
  )
    return null;
  run.events = events;
  run.end = after;
  run.bytes = counted;
  run.discount = discount;
  run.length = length;
  return run;
}

function expect(part: Buffer): void {
  const { length } = part;
  const from = expectedLength;
  if (length > SHORT_PART_BYTES) expected.set(part, from);
  else for (let i = 0; i < length; i++) expected[from + i] = part[i]!;
  expectedLength = from + length;
}

/** A cheap comparison of the last bytes before `end`. */
function endsAlike(part: Buffer, bytes: Buffer, end: number): boolean {
  const { length } = part;
  return (
    bytes[end - 1] === part[length - 1] && bytes[end - 2] === part[length - 2] && bytes[end - 3] === part[length - 3]
  );
}

/** The slot that is being read. All reads share this object. */
const slot = {
  /** The start and the end of the latest number. */
  start: 0,
  end: 0,
  /** All bytes of texts combined by OR. The result is 0x80 or more if a byte is not ASCII. */
  high: 0,
  escapes: 0,
  /** The place of the quote after a text; -1 if the text is not valid, or has another escape. */
  textEnd(bytes: Buffer, start: number, end: number, escapable: Uint8Array): number {
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
      if (escapable[escaped] !== 1) return -1;
      expected[to++] = escaped;
      escapes++;
    }
    return -1;
  },
  /** The place after the digits; -1 without digits, and with a leading zero. */
  digitsEnd(bytes: Buffer, start: number, end: number): number {
    let i = start;
    for (; i < end && bytes[i]! >= ZERO && bytes[i]! <= ZERO + 9; i++) expected[expectedLength++] = bytes[i]!;
    return i === start || (i - start > 1 && bytes[start] === ZERO) ? -1 : i;
  },
};
