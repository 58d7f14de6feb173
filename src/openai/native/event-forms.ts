import { isUtf8 } from 'node:buffer';
import { mayBeRun, NO_RUN_BYTES, runDiscount } from '../caps/output-bound.ts';

/** Members whose values differ from event to event, with the texts among them that are output. */
const SLOT = /"(sequence_number)":(?=\d)|"(delta|text|thinking|partial_json|obfuscation)":"/g;
const NO_OUTPUT: ReadonlySet<string> = new Set(['sequence_number', 'obfuscation']);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ESCAPES = new Uint8Array(256);
for (const escape of '"\\/bfnrt') ESCAPES[escape.charCodeAt(0)] = 1;

const FORMS_MAX = 4;
/** A longer text is parsed. */
const EVENT_BYTES_MAX = 4096;

/** The bytes of an event around what differs, and what stands between them. */
interface Form {
  readonly parts: readonly Buffer[];
  readonly slots: readonly { readonly isNumber: boolean; readonly isOutput: boolean }[];
  /** The line before the data. */
  readonly head: Buffer;
}

/** Events of a delta in a form that was seen before: they are valid, and pass without being parsed. */
interface EventForms {
  /** The line before the data of the event, where its form is known; else null. */
  match(bytes: Buffer, start: number, end: number): Buffer | null;
  /** Bytes of output of the event that was matched. */
  readonly text: number;
  /** How many of them do not count towards the maximum. */
  readonly discount: number;
  /** Learns the form of an event that JSON.parse accepts. */
  learn(type: string, text: string): void;
}

/** A native call pays for longer parts alone. */
const SHORT_PART_BYTES = 24;

function isAt(part: Buffer, bytes: Buffer, at: number, after: number): boolean {
  if (part.length > SHORT_PART_BYTES) return bytes.compare(part, 0, part.length, at, after) === 0;
  for (let i = 0; i < part.length; i++) if (bytes[at + i] !== part[i]) return false;
  return true;
}

export function createEventForms(): EventForms {
  const forms: Form[] = [];
  let counted = 0;
  let discount = 0;

  /** All bytes of texts by OR: from 0x80 up where they are not ASCII. */
  let high = 0;

  /** The place behind the inside of a JSON string; -1 for one that is not valid, or has an escape of digits. */
  function textEnd(bytes: Buffer, start: number, end: number): number {
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!;
      high |= byte;
      if (byte === QUOTE) return i;
      if (byte < 0x20) return -1;
      if (byte === BACKSLASH && ESCAPES[bytes[++i]!] !== 1) return -1;
    }
    return -1;
  }

  function fits({ parts, slots }: Form, bytes: Buffer, start: number, end: number): boolean {
    counted = 0;
    discount = 0;
    high = 0;
    let at = start;
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!;
      const after = at + part.length;
      if (after > end || !isAt(part, bytes, at, after)) return false;
      at = after;
      const slot = slots[i];
      if (slot === undefined) continue;
      if (slot.isNumber) {
        const from = at;
        while (at < end && bytes[at]! >= 0x30 && bytes[at]! <= 0x39) at++;
        // A number has no zero before its other digits.
        if (at === from || (at - from > 1 && bytes[from] === 0x30)) return false;
        continue;
      }
      const close = textEnd(bytes, at, end);
      if (close === -1) return false;
      if (slot.isOutput) {
        counted += close - at;
        if (close - at > NO_RUN_BYTES && mayBeRun(bytes, at, close))
          discount += runDiscount(bytes, at, close, close - at);
      }
      at = close;
    }
    // What stands around the texts is valid, and their quotes are ASCII.
    return at === end && (high < 0x80 || isUtf8(bytes.subarray(start, end)));
  }

  return {
    get text() {
      return counted;
    },
    get discount() {
      return discount;
    },
    match(bytes, start, end) {
      if (end - start > EVENT_BYTES_MAX) return null;
      for (let i = 0; i < forms.length; i++) {
        const form = forms[i]!;
        if (!fits(form, bytes, start, end)) continue;
        if (i > 0) forms.unshift(...forms.splice(i, 1));
        return form.head;
      }
      return null;
    },
    learn(type, text) {
      if (text.length > EVENT_BYTES_MAX) return;
      const parts: Buffer[] = [];
      const slots: Form['slots'][number][] = [];
      let from = 0;
      SLOT.lastIndex = 0;
      for (let found = SLOT.exec(text); found !== null; found = SLOT.exec(text)) {
        const [, number, string] = found;
        const start = SLOT.lastIndex;
        const bytes = Buffer.from(text.slice(start));
        const end = number === undefined ? textEnd(bytes, 0, bytes.length) : /^\d+/.exec(text.slice(start))![0].length;
        if (end === -1) return;
        parts.push(Buffer.from(text.slice(from, start)));
        slots.push({ isNumber: number !== undefined, isOutput: !NO_OUTPUT.has((number ?? string)!) });
        from = start + (number === undefined ? bytes.toString('utf8', 0, end).length : end);
        SLOT.lastIndex = from;
      }
      if (slots.every(({ isOutput }) => !isOutput)) return;
      parts.push(Buffer.from(text.slice(from)));
      forms.unshift({ parts, slots, head: Buffer.from(`event: ${type}\ndata: `) });
      forms.length = Math.min(forms.length, FORMS_MAX);
    },
  };
}
