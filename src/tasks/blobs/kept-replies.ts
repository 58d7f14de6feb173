import { isObject, type ReplySink } from '#wire';
import { type GivenReply, idempotencyError, type TakenKey } from '#gateway';
import type { Blobs } from './blob.ts';
import { sourceOf } from './create-blobs.ts';
import { writePieces } from './pieces.ts';

/** Replies that are too large for the database, kept as files: a repeat of their request is given them. */
export interface KeptReplies {
  /** Bytes of the largest reply that is kept. */
  readonly bytesMax: number;
  /** Keeps the reply of a call. Rejects where there is no room for it: a repeat is refused then. */
  keep(account: string, callId: string, head: Omit<GivenReply, 'body'>, chunks: readonly Uint8Array[]): Promise<void>;
  /**
   * Answers a request whose idempotency key is taken, with the reply that is kept of its call. Rejects with the error
   * of the key where none is, and with BlobUnreachable before anything is written.
   */
  repeat(account: string, by: TakenKey, client: ReplySink): Promise<void>;
}

const sourceOfReply = (account: string, callId: string) => sourceOf('reply', account, callId);

export function createKeptReplies(blobs: Pick<Blobs, 'write' | 'find' | 'read'>, bytesMax: number): KeptReplies {
  return {
    bytesMax,
    async keep(account, callId, { status, headers }, chunks) {
      const source = sourceOfReply(account, callId);
      await blobs.write({ source, account }, async (file) => {
        for (const chunk of chunks) await file.write(chunk);
        const type = headers['content-type'] ?? 'application/octet-stream';
        return { type, notes: JSON.stringify({ status, headers }) };
      });
    },
    async repeat(account, by, client) {
      const [blob] = by.kind === 'unkept' ? await blobs.find([sourceOfReply(account, by.callId)]) : [];
      if (blob?.state !== 'stored') throw idempotencyError(by.kind);
      const { status, headers } = headIn(blob.notes);
      await writePieces(blobs, [blob], { start: 0, end: blob.bytes - 1 }, client, () =>
        client.head(status, { ...headers, 'idempotent-replayed': 'true' }),
      );
    },
  };
}

function headIn(notes: string): { readonly status: number; readonly headers: Record<string, string> } {
  const read: unknown = JSON.parse(notes);
  const { status, headers } = isObject(read) ? read : {};
  return { status: Number(status), headers: headers as Record<string, string> };
}
