import { isUtf8 } from 'node:buffer';
import { mayBeRun, NO_RUN_BYTES, runDiscount } from '../caps/output-bound.ts';
import type { ByteOutput } from './byte-output.ts';
import { BLANK_LINE, type ChunkTemplate } from './chunk-template.ts';

/** Events of one form that follow each other, rewritten. */
interface RewrittenRun {
  readonly events: number;
  /** The place after them. */
  readonly end: number;
  /** Bytes of their texts, an escape counting one. */
  readonly bytes: number;
  /** How many of `bytes` do not count towards the maximum. */
  readonly discount: number;
}

/** An event that is longer is left to the parser. */
const RUN_BYTES_MAX = 32 * 1024;
/** A text that is longer is copied by a native call. */
const SHORT_TEXT_BYTES = 32;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ESCAPES = new Uint8Array(256);
for (const escape of '"\\bfnrt') ESCAPES[escape.charCodeAt(0)] = 1;

/**
 * The bytes of a run whose events all have the form of the template. One native call compares the whole run with
 * them: one for each event took half of the time. All streams share this memory, as a run is read in one go.
 */
const expected = Buffer.allocUnsafeSlow(2 * RUN_BYTES_MAX);

/**
 * Writes the events that begin with the payload at `start` to `output`, at most `eventsMax`, with at most `room`
 * bytes of text that count. It ends before the first event that has another form, or is not whole, or has a text
 * that JSON.stringify would write in another way.
 *
 * null, with nothing written, where that is the first event. Also where a later one looked as if it had the form and
 * has not: then ask for the first alone.
 *
 * `framed`: the events stand in `bytes` as on the wire. Else the bytes up to `end` are one payload.
 */
export function rewriteRun(
  { given, ours }: ChunkTemplate,
  bytes: Buffer,
  start: number,
  end: number,
  framed: boolean,
  eventsMax: number,
  room: number,
  output: ByteOutput,
): RewrittenRun | null {
  const { head, tail, between } = given;
  const last = Math.min(end, start + RUN_BYTES_MAX);
  const tailLength = framed ? tail.length : tail.length - BLANK_LINE;
  let textStart = start + head.length;
  if (textStart >= last || !endsAlike(head, bytes, textStart)) return null;
  const outputStart = output.length;
  output.write(ours.head);
  expected.set(head, 0);
  let expectedLength = head.length;
  // The last event that is taken ends there.
  let outputEnd = outputStart;
  let after = start;
  let events = 0;
  let counted = 0;
  let discount = 0;
  let high = 0;
  for (let more = true; more && text.scan(bytes, textStart, last);) {
    const textEnd = text.end;
    const length = textEnd - textStart;
    const count = length - text.escapes;
    const less =
      count > NO_RUN_BYTES && mayBeRun(bytes, textStart, textEnd) ? runDiscount(bytes, textStart, textEnd, count) : 0;
    if (textEnd + tailLength > last || counted + count - discount - less > room) break;
    events++;
    counted += count;
    discount += less;
    high |= text.high;
    const next = textEnd + between.length;
    more = events < eventsMax && next < last && endsAlike(between, bytes, next);
    copy(bytes, textStart, textEnd, expected, expectedLength);
    expected.set(more ? between : tail, expectedLength + length);
    expectedLength += length + between.length;
    copy(bytes, textStart, textEnd, output.reserve(length), output.length);
    output.length += length;
    outputEnd = output.length + ours.tail.length;
    output.write(more ? ours.between : ours.tail);
    after = textEnd + tailLength;
    textStart = next;
  }
  const taken =
    events > 0 &&
    (framed || after === end) &&
    bytes.compare(expected, 0, after - start, start, after) === 0 &&
    // What stands around the texts is valid and their quotes are ASCII: they are valid where all of it is.
    (high < 0x80 || isUtf8(bytes.subarray(start, after)));
  output.length = taken ? outputEnd : outputStart;
  return taken ? { events, end: after, bytes: counted, discount } : null;
}

/** Whether `bytes` before `end` may be `part`: a cheap look at its last three, which a quote ends. */
function endsAlike(part: Buffer, bytes: Buffer, end: number): boolean {
  const { length } = part;
  return bytes[end - 1] === QUOTE && bytes[end - 2] === part[length - 2] && bytes[end - 3] === part[length - 3];
}

/** The inside of a JSON string. One object for all, as there is one for each event. */
const text = {
  /** The place of its quote. */
  end: 0,
  escapes: 0,
  /** All its bytes by OR: from 0x80 up where it is not ASCII. */
  high: 0,
  /** False where it does not end before `limit`, or JSON.stringify would write it in another way. */
  scan(bytes: Buffer, start: number, limit: number): boolean {
    let escapes = 0;
    let high = 0;
    for (let i = start; i < limit; i++) {
      const byte = bytes[i]!;
      if (byte === QUOTE) {
        this.end = i;
        this.escapes = escapes;
        this.high = high;
        return true;
      }
      if (byte < 0x20) return false;
      if (byte === BACKSLASH) {
        if (ESCAPES[bytes[++i]!] !== 1) return false;
        escapes++;
      }
      high |= byte;
    }
    return false;
  },
};

function copy(source: Buffer, start: number, end: number, target: Buffer, at: number): void {
  if (end - start > SHORT_TEXT_BYTES) source.copy(target, at, start, end);
  else for (let i = start, to = at; i < end; i++, to++) target[to] = source[i]!;
}
