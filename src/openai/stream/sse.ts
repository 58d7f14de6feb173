import { createByteBuffer } from '#wire';

/** A line or an event of a stream of server-sent events is longer than the cap. */
export class SseError extends Error {
  override readonly name = 'SseError';
  /** False for a line without data: a comment, white space, another field. */
  readonly isData: boolean;
  constructor(message: string, isData: boolean) {
    super(message);
    this.isData = isData;
  }
}

export interface SseScanner {
  /** Takes the next bytes, split anywhere. */
  push(chunk: Buffer): void;
  /**
   * Ends the stream. An event without its closing blank line counts as well, because many servers leave out the last
   * one.
   */
  end(): void;
}

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;

/** Longest line, and longest data of one event. */
const EVENT_BYTES_MAX = 1024 * 1024;

/**
 * Finds events without decoding the bytes. `onData` gets the payload of each event as a range of a buffer that is
 * valid only during the call. It returns false to stop. `takeRun` may take several events at once. It gets the place
 * of a payload and the end of the bytes, and returns the place after the blank line of the last event that it took.
 * `refused` tells `onData` that `takeRun` did not take the event. `isError`: the event is named `error`. `takeRun`
 * does not get such an event.
 *
 * Lines end in LF, CRLF or CR. Comments, other fields and other names are skipped. Lines of data are joined by LF. Time
 * is linear in the bytes, however they are split. Throws SseError at a line or event above `bytesMax`.
 */
export function createSseScanner(
  onData: (bytes: Buffer, start: number, end: number, refused: boolean, isError: boolean) => boolean,
  bytesMax: number = EVENT_BYTES_MAX,
  takeRun: (bytes: Buffer, start: number, end: number) => number = takeNone,
): SseScanner {
  /** The unfinished line, and the data of the unfinished event. */
  const line = createByteBuffer(bytesMax, () => tooLong(bytesMax, isData(line.bytes, 0)));
  const data = createByteBuffer(bytesMax, () => tooLong(bytesMax, true));
  let hasData = false;
  /** The unfinished event is named `error`. */
  let isError = false;
  let afterCr = false;
  let firstLine = true;
  let stopped = false;

  function dispatch(bytes: Buffer, start: number, end: number, refused: boolean, hasName: boolean): void {
    if (end > start && !onData(bytes, start, end, refused, hasName)) stopped = true;
  }

  function takeLine(bytes: Buffer, from: number, end: number): void {
    let start = from;
    if (firstLine) {
      firstLine = false;
      if (bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf) start += 3;
    }
    if (start === end) {
      if (hasData) {
        dispatch(data.bytes, 0, data.length, false, isError);
        data.clear();
        hasData = false;
      }
      isError = false;
      return;
    }
    if (isName(bytes, start)) isError = namesError(bytes, start, end);
    if (!isData(bytes, start) || (end > start + 4 && bytes[start + 4] !== COLON) || end < start + 4) return;
    if (hasData) data.push(LF_BYTES, 0, 1);
    hasData = true;
    const value = bytes[start + 5] === SPACE ? start + 6 : start + 5;
    if (value < end) data.push(bytes, value, end);
  }

  /** Reads line by line from `from` to the next blank line or the end of the chunk. Returns where it stopped. */
  function byLine(chunk: Buffer, from: number): number {
    let i = from;
    while (i < chunk.length) {
      if (afterCr) {
        afterCr = false;
        if (chunk[i] === LF && ++i === chunk.length) break;
      }
      let end = i;
      while (end < chunk.length && chunk[end] !== LF && chunk[end] !== CR) end++;
      if (line.length === 0 && end - i > bytesMax) throw tooLong(bytesMax, isData(chunk, i));
      if (end === chunk.length) {
        line.push(chunk, i, end);
        return end;
      }
      afterCr = chunk[end] === CR;
      if (line.length > 0) {
        line.push(chunk, i, end);
        takeLine(line.bytes, 0, line.length);
        line.clear();
      } else {
        takeLine(chunk, i, end);
      }
      i = end + 1;
      if (stopped || (!hasData && !afterCr)) return i;
    }
    return i;
  }

  /**
   * Takes whole events of one line, `data:…` LF LF, with one native search each. Nearly all events have this form.
   * An `event:` line before the data is skipped. Returns where the form ends.
   */
  function byEvent(chunk: Buffer, from: number): number {
    let i = from;
    while (!stopped) {
      const at = isName(chunk, i) ? chunk.indexOf(LF, i) + 1 : i;
      // The `event:` line continues in the next chunk, or names an error.
      if (at < i || (at > i && namesError(chunk, i, at - 1))) break;
      if (!isData(chunk, at) || chunk[at + 4] !== COLON) break;
      const start = chunk[at + 5] === SPACE ? at + 6 : at + 5;
      const after = takeRun(chunk, start, chunk.length);
      if (after > start) {
        firstLine = false;
        i = after;
        continue;
      }
      const end = chunk.indexOf(LF, at + 5);
      if (end === -1 || chunk[end + 1] !== LF) break;
      if (end - at > bytesMax || at - i > bytesMax) throw tooLong(bytesMax, end - at > bytesMax);
      firstLine = false;
      dispatch(chunk, start, end, true, false);
      i = end + 2;
    }
    return i;
  }

  return {
    push(chunk) {
      const plain = chunk.indexOf(CR) === -1;
      let i = 0;
      while (i < chunk.length) {
        if (stopped) return;
        if (plain && !hasData && !isError && !afterCr && line.length === 0) i = byEvent(chunk, i);
        if (!stopped && i < chunk.length) i = byLine(chunk, i);
      }
    },
    end() {
      if (stopped) return;
      if (line.length > 0) takeLine(line.bytes, 0, line.length);
      line.clear();
      if (hasData) dispatch(data.bytes, 0, data.length, false, isError);
      hasData = false;
      data.clear();
    },
  };
}

const takeNone = (_bytes: Buffer, start: number) => start;

const LF_BYTES = Buffer.from('\n');
const ERROR = Buffer.from('error');

function isData(bytes: Buffer, at: number): boolean {
  return bytes[at] === 0x64 && bytes[at + 1] === 0x61 && bytes[at + 2] === 0x74 && bytes[at + 3] === 0x61;
}

/** Whether `event:` is at this place. */
function isName(bytes: Buffer, at: number): boolean {
  return (
    bytes[at] === 0x65 &&
    bytes[at + 1] === 0x76 &&
    bytes[at + 2] === 0x65 &&
    bytes[at + 3] === 0x6e &&
    bytes[at + 4] === 0x74 &&
    bytes[at + 5] === COLON
  );
}

/** Whether the `event:` line at this place names an error. */
function namesError(bytes: Buffer, at: number, end: number): boolean {
  const from = bytes[at + 6] === SPACE ? at + 7 : at + 6;
  return end - from === ERROR.length && bytes.compare(ERROR, 0, ERROR.length, from, end) === 0;
}

const tooLong = (bytesMax: number, ofData: boolean) =>
  new SseError(`a line of the stream is longer than ${bytesMax} bytes`, ofData);
