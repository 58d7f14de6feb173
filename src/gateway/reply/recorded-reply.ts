import type { ReplySink } from '#wire';
import { KEPT_BYTES_MAX, type GivenReply } from '../idempotency/idempotency.ts';

/** A reply that is recorded while it is written to the client. */
interface RecordedReply {
  /** Records everything that is written, and never reports that the client has left. */
  readonly sink: ReplySink;
  /** The whole reply; null before its end, and null if it failed. */
  reply(): GivenReply | null;
  /** The chunks of a reply that is too large for `reply` to have a body; null for any other reply. */
  large(): readonly Uint8Array[] | null;
  /** Writes the last bytes, which the sink holds back, to the client. */
  end(): void;
}

/** `fileBytesMax`: the largest reply that is stored as a file, in bytes; default none is. */
export function recordReply(client: ReplySink, fileBytesMax = 0): RecordedReply {
  // The largest reply whose chunks are held in memory. Replies for the database are held even if files must be smaller.
  const bytesMax = Math.max(fileBytesMax, KEPT_BYTES_MAX.charged);
  let head: { status: number; headers: Record<string, string> } | null = null;
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  let last: Uint8Array | null = null;
  let failed = false;
  const keep = (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    if (bytes <= bytesMax) chunks.push(chunk);
    else chunks = [];
  };
  return {
    sink: {
      closed: false,
      head(status, headers) {
        head = {
          status,
          headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
        };
        if (!client.closed) client.head(status, headers);
      },
      flush() {
        if (!client.closed) client.flush();
      },
      write(chunk) {
        keep(chunk);
        return client.closed || client.write(chunk);
      },
      drained: () => client.drained(),
      end(rest) {
        last = typeof rest === 'string' ? Buffer.from(rest) : rest;
        keep(last);
      },
      fail(chunk) {
        failed = true;
        last = chunk;
      },
    },
    reply() {
      if (head === null || last === null || failed) return null;
      return { ...head, body: bytes <= KEPT_BYTES_MAX.charged ? Buffer.concat(chunks) : null };
    },
    large: () =>
      head === null || last === null || failed || bytes <= KEPT_BYTES_MAX.charged || bytes > bytesMax ? null : chunks,
    end() {
      if (last !== null && !client.closed) client.end(last);
    },
  };
}
