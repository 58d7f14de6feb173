import { createByteBuffer } from '#wire';
import { tooLarge } from '#wire/replies';

/** Splits a stream into the data of its events. */
export interface EventSplitter {
  /** Takes the next bytes, split anywhere. Returns copies of the data of the events that end in them. */
  push(chunk: Uint8Array): readonly Buffer[];
  /** Returns the last event if no blank line closed it. */
  end(): readonly Buffer[];
  /** Bytes of the event that has not ended. */
  kept(): number;
}

const LF = 0x0a;
const CR = 0x0d;
const DATA = Buffer.from('data:');
const SPACE = 0x20;

/**
 * Reads server-sent events as bytes, because an event has megabytes of base64, which should not become a string.
 * Events whose data has several lines are skipped, because no image API sends them. `push` throws UpstreamFailure
 * for an event above `bytesMax`.
 */
export function createEventSplitter(bytesMax: number): EventSplitter {
  const pending = createByteBuffer(bytesMax, () => tooLarge(`an event of its stream is larger than ${bytesMax} bytes`));
  /** The current line has no bytes yet. */
  let lineEmpty = true;
  const take = (): readonly Buffer[] => {
    const data = dataOf(pending.bytes.subarray(0, pending.length));
    pending.clear();
    return data === null ? [] : [data];
  };
  return {
    kept: () => pending.length,
    push(chunk) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const events: Buffer[] = [];
      let from = 0;
      for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
        const length = at - from;
        const isBlank = lineEmpty && (length === 0 || (length === 1 && bytes[from] === CR));
        pending.push(bytes, from, at + 1);
        from = at + 1;
        lineEmpty = true;
        if (isBlank) events.push(...take());
      }
      if (from < bytes.length) {
        pending.push(bytes, from, bytes.length);
        lineEmpty = lineEmpty && bytes.length - from === 1 && bytes[from] === CR;
      }
      return events;
    },
    end: take,
  };
}

/** The data of an event, copied; null without data, or with several lines of data. */
function dataOf(event: Buffer): Buffer | null {
  let found: Buffer | null = null;
  for (let from = 0; from < event.length;) {
    const end = event.indexOf(LF, from);
    const to = end === -1 ? event.length : end;
    if (event.subarray(from, from + DATA.length).equals(DATA)) {
      if (found !== null) return null;
      const start = from + DATA.length + (event[from + DATA.length] === SPACE ? 1 : 0);
      found = event.subarray(start, event[to - 1] === CR ? to - 1 : to);
    }
    from = to + 1;
  }
  return found === null ? null : Buffer.from(found);
}
