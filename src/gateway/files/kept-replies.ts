import { type ClientSink, slicesOf } from '#http';
import { GatewayError } from '#errors';
import { isObject } from '#wire';
import { type GivenReply, idempotencyError, KEPT_BYTES_MAX, type TakenKey } from '#call';
import { type Blob, type Blobs, BlobUnreachable } from './blob.ts';
import { sourceOf } from './create-blobs.ts';
import { pieceLength, writePieces } from './pieces.ts';

/**
 * Replies that are too large for the database, stored as files. A repeat of the request with the same idempotency key
 * gets them.
 */
export interface KeptReplies {
  readonly bytesMax: number;
  /**
   * True if the reply of a charged call must be stored as a file: too large for the database, but not above `bytesMax`.
   */
  takes(bytes: number): boolean;
  /**
   * Stores the reply of a call. Resolves with false if the account has no room for it. Then a repeat is refused, and
   * also if this rejects; log the rejection for the operator. `form` distinguishes several forms of a reply to one
   * request.
   */
  keep(
    account: string,
    callId: string,
    head: Omit<GivenReply, 'body'>,
    chunks: readonly Uint8Array[],
    form?: string,
  ): Promise<boolean>;
  /** The stored reply, in a form, of the call that used an idempotency key; null without a stored reply. */
  find(account: string, key: TakenKey, form?: string): Promise<KeptReply | null>;
  /**
   * Answers a request whose idempotency key is already used, with the stored reply of its call. Rejects as `writeTo`
   * does, and with the error of the key if no reply is stored.
   */
  repeat(account: string, key: TakenKey, client: ClientSink, around?: Around): Promise<void>;
}

interface KeptReply {
  /**
   * Writes the reply. Without `around` it has its original head and the header `idempotent-replayed`. If the file
   * cannot be read, rejects with GatewayError `service_unavailable` before anything is written. A later failure closes
   * the connection.
   */
  writeTo(client: ClientSink, around?: Around): Promise<void>;
}

/** The rest of an answer that contains a stored reply. */
export interface Around {
  readonly before: string;
  readonly after: string;
  /** Headers of the answer, without its length. */
  readonly headers: Readonly<Record<string, string>>;
}

const RETRY_S = 5;

const sourceOfReply = (account: string, callId: string, form: string | undefined) =>
  sourceOf('reply', account, callId, ...(form === undefined ? [] : [form]));

export function createKeptReplies(blobs: Pick<Blobs, 'write' | 'find' | 'read'>, bytesMax: number): KeptReplies {
  const find = async (account: string, key: TakenKey, form?: string): Promise<KeptReply | null> => {
    const [blob] = key.kind === 'unkept' ? await blobs.find([sourceOfReply(account, key.callId, form)]) : [];
    return blob?.state === 'stored' ? { writeTo: (client, around) => writeReply(blobs, blob, client, around) } : null;
  };
  return {
    bytesMax,
    takes: (bytes) => bytes > KEPT_BYTES_MAX.charged && bytes <= bytesMax,
    async keep(account, callId, { status, headers }, chunks, form) {
      const source = sourceOfReply(account, callId, form);
      try {
        const bytes = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
        const blob = await blobs.write({ source, account, bytes }, async (file) => {
          for (const chunk of chunks) for (const slice of slicesOf(chunk)) await file.write(slice);
          const type = headers['content-type'] ?? 'application/octet-stream';
          return { type, notes: JSON.stringify({ status, headers }) };
        });
        return blob !== null;
      } catch (error) {
        if (error instanceof GatewayError && error.code === 'rate_limit_exceeded') return false;
        throw error;
      }
    },
    find,
    async repeat(account, key, client, around) {
      const reply = await find(account, key);
      if (reply === null) throw idempotencyError(key.kind);
      await reply.writeTo(client, around);
    },
  };
}

async function writeReply(
  blobs: Pick<Blobs, 'read'>,
  blob: Blob,
  client: ClientSink,
  around: Around | null = null,
): Promise<void> {
  const { status, headers } = headIn(blob.notes);
  const pieces = around === null ? [blob] : ([Buffer.from(around.before), blob, Buffer.from(around.after)] as const);
  const length = pieces.reduce((sum, piece) => sum + pieceLength(piece), 0);
  const own =
    around === null ? { ...headers, 'idempotent-replayed': 'true' } : { ...around.headers, 'content-length': length };
  try {
    await writePieces(blobs, pieces, { start: 0, end: length - 1 }, client, () => client.head(status, own));
  } catch (cause) {
    if (!(cause instanceof BlobUnreachable)) throw cause;
    throw new GatewayError('service_unavailable', 'The reply that is kept cannot be read at the moment', {
      retryAfterS: RETRY_S,
      cause,
    });
  }
}

function headIn(notes: string): { readonly status: number; readonly headers: Record<string, string> } {
  const read: unknown = JSON.parse(notes);
  const { status, headers } = isObject(read) ? read : {};
  return { status: Number(status), headers: headers as Record<string, string> };
}
