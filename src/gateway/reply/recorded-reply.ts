import type { ReplySink } from '#wire';
import { KEPT_BYTES_MAX, type GivenReply } from '../idempotency/idempotency.ts';

/** A reply that is kept while it is written. */
interface RecordedReply {
  /** Keeps what is written through it, and never reports that the client is gone. */
  readonly sink: ReplySink;
  /** The whole reply; null while it has no end, and where it failed. */
  reply(): GivenReply | null;
  /** The reply in pieces, where it is too large for `reply` to have a body; null for any other. */
  large(): readonly Uint8Array[] | null;
  /** Writes the last bytes to the client, which the sink holds back. */
  end(): void;
}

/** `bytesMax`: of a reply whose pieces are held. */
export function recordReply(client: ReplySink, bytesMax: number = KEPT_BYTES_MAX.charged): RecordedReply {
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
