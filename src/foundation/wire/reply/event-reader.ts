import { createByteBuffer } from '../lines.ts';

export interface SseEvent {
  /** `message` if the event has no `event` field. */
  readonly event: string;
  /** Empty if the event has no data, for example only an id. */
  readonly data: string;
  /** The id of this event; null if it has none. Then the last id stays valid. */
  readonly id: string | null;
  /** Milliseconds. */
  readonly retry: number | null;
  /** The text of the event as received, with its comments and its blank line. */
  readonly raw: string;
  /** The data, if the event is large and its data is a single line. Then `data` is empty, and `raw` lacks the data. */
  readonly largeData?: Buffer;
}

export interface EventReader {
  /** Takes the next bytes, which may be split anywhere. Returns the events that are complete now. */
  push(chunk: Uint8Array): readonly SseEvent[];
  /** Ends the stream. Returns a last event without a blank line, because many servers leave out the last blank line. */
  end(): readonly SseEvent[];
}

/** An event of a stream is longer than the limit. */
export class EventError extends Error {
  override readonly name = 'EventError';
}

const LF = 0x0a;
const CR = 0x0d;

/**
 * Reads server-sent events. Lines end in LF, CRLF or CR. A block of comments only is dropped. Time is linear in the
 * bytes, however they are split. For an event longer than `bytesMax`, `push` throws EventError. If complete events come
 * before it, `push` returns them first, and the next call throws. `largeOver`: the data of longer events is given as
 * bytes, because making a text of it could block other calls; default: never.
 */
export function createEventReader({
  bytesMax,
  largeOver = bytesMax,
}: {
  readonly bytesMax: number;
  readonly largeOver?: number;
}): EventReader {
  const tooLong = () => new EventError(`an event of the stream is longer than ${bytesMax} bytes`);
  const pending = createByteBuffer(bytesMax, tooLong);
  let lineEmpty = true;
  /** The previous chunk ended in CR, so an LF at the start of the next chunk belongs to it. */
  let afterCr = false;
  let crlf = false;
  let first = true;
  let fault: Error | null = null;

  /** Parses `bytes` from `start` to `end`: one event, with the first byte of its blank line. */
  function read(bytes: Buffer, start: number, end: number, events: SseEvent[]): void {
    const large = end - start > largeOver ? readLarge(bytes.subarray(start, end), largeOver) : null;
    if (large !== null) return void events.push(large);
    // A blank line that ends in CRLF completes the event at its CR, before the LF has arrived.
    let raw = bytes.toString('utf8', start, end) + (crlf && bytes[end - 1] === CR ? '\n' : '');
    if (first && raw.startsWith('\uFEFF')) raw = raw.replace(/^\uFEFF[\r\n]*/, '');
    const event = parseEvent(raw);
    if (event) events.push(event);
  }

  function take(chunk: Buffer, events: SseEvent[]): void {
    const { length } = chunk;
    let start = 0;
    let i = 0;
    if (afterCr && length > 0) {
      afterCr = false;
      if (chunk[0] === LF) {
        i = 1;
        if (pending.length === 0) start = 1;
        else crlf = true;
      }
    }
    let lf = -1;
    let cr = -1;
    while (i < length) {
      if (lf < i) lf = indexOrEnd(chunk, LF, i);
      if (cr < i) cr = indexOrEnd(chunk, CR, i);
      const end = Math.min(lf, cr);
      if (end === length) {
        lineEmpty = false;
        break;
      }
      const blank = lineEmpty && end === i;
      lineEmpty = true;
      i = end + 1;
      const byCr = end === cr;
      if (byCr && i === length) afterCr = true;
      const withLf = byCr && chunk[i] === LF;
      if (withLf) i++;
      if (!blank) {
        crlf = withLf;
        continue;
      }
      if (pending.length > 0) {
        pending.push(chunk, start, end + 1);
        read(pending.bytes, 0, pending.length, events);
        pending.clear();
      } else if (end > start) {
        if (end + 1 - start > bytesMax) throw tooLong();
        read(chunk, start, end + 1, events);
      }
      first = false;
      crlf = false;
      start = i;
    }
    if (start < length) pending.push(chunk, start, length);
  }

  return {
    push(chunk) {
      if (fault) throw fault;
      const events: SseEvent[] = [];
      try {
        take(asBuffer(chunk), events);
      } catch (error) {
        fault = error as Error;
        if (events.length === 0) throw fault;
      }
      return events;
    },
    end() {
      if (fault) throw fault;
      if (pending.length === 0) return [];
      const events: SseEvent[] = [];
      const missing = Buffer.from(lineEmpty && !afterCr ? '\n' : '\n\n');
      pending.push(missing, 0, missing.length);
      read(pending.bytes, 0, pending.length, events);
      pending.clear();
      return events;
    },
  };
}

const asBuffer = (chunk: Uint8Array) =>
  Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);

function indexOrEnd(chunk: Buffer, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from);
  return index === -1 ? chunk.length : index;
}

const DATA = Buffer.from('data:');
const SPACE = 0x20;

/** An event whose data is a single line of more than `largeOver` bytes; null for any other event. */
function readLarge(bytes: Buffer, largeOver: number): SseEvent | null {
  const lines: string[] = [];
  let largeData: Buffer | null = null;
  for (let at = 0, end; at < bytes.length; at = end + 1) {
    end = Math.min(indexOrEnd(bytes, LF, at), indexOrEnd(bytes, CR, at));
    const line = bytes.subarray(at, end);
    if (line.indexOf(DATA) !== 0) lines.push(line.toString());
    else if (largeData !== null || line.length <= largeOver) return null;
    else largeData = line.subarray(line[DATA.length] === SPACE ? DATA.length + 1 : DATA.length);
  }
  if (largeData === null) return null;
  const event = parseEvent([...lines, 'data:', ''].join('\n'));
  return event && { ...event, largeData };
}

/** The event of a block of lines; null if the block has no known field. */
function parseEvent(raw: string): SseEvent | null {
  let event = 'message';
  let data: string | null = null;
  let id: string | null = null;
  let retry: number | null = null;
  let known = false;
  for (const line of raw.includes('\r') ? raw.split(/\r\n|[\r\n]/) : raw.split('\n')) {
    const colon = line.indexOf(':');
    if (colon === 0 || line === '') continue;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line.startsWith(' ', colon + 1) ? colon + 2 : colon + 1);
    if (field === 'data') data = data === null ? value : `${data}\n${value}`;
    else if (field === 'event') event = value || 'message';
    else if (field === 'id' && !value.includes('\0')) id = value;
    else if (field === 'retry' && /^\d{1,15}$/.test(value)) retry = Number(value);
    else continue;
    known = true;
  }
  return known ? { event, data: data ?? '', id, retry, raw } : null;
}

/** Headers of every answer that comes in parts, so that no proxy in between collects or compresses it. */
export const STREAM_HEADERS = { 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' } as const;

/** Formats an event. Each line of `data` becomes a `data:` line. */
export function eventText(data: string, id: string | null = null, event = 'message'): string {
  // Faster than one regular expression: a large event is searched in a millisecond.
  const isOneLine = !data.includes('\n') && !data.includes('\r');
  const lines = isOneLine ? data : data.replaceAll(/\r\n|[\r\n]/g, '\ndata: ');
  return `event: ${event}\n${id === null ? '' : `id: ${id}\n`}data: ${lines}\n\n`;
}
