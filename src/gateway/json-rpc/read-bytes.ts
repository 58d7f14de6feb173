import { createReplyBytes, inTurns, type LargeStrings, markLargeStrings, tooLarge } from '#wire';
import type { UpstreamReply } from '../upstream.ts';

/** How a reply with large strings is read. */
export interface LargeReply {
  /** Receives the large strings. The text has their marks instead. */
  readonly strings: LargeStrings;
  /** Most bytes of the reply with them. */
  readonly bytesMax: number;
}

/** A larger text is read in several turns of the event loop, and its large strings are not parsed. */
const LARGE_TEXT_BYTES = 1024 * 1024;

/** The size above which the large strings of a text are not parsed. `textBytesMax`: the limit for the rest. */
export const largeOver = (textBytesMax: number): number => Math.min(LARGE_TEXT_BYTES, textBytesMax);

/**
 * The whole body of a reply. Rejects with UpstreamFailure if it is too large. `large`: the large strings of a large
 * body are replaced by marks, and `bytesMax` is the limit for the rest.
 */
export async function readBytes(reply: UpstreamReply, bytesMax: number, large?: LargeReply): Promise<Buffer> {
  if (large !== undefined) return readOutline(reply, bytesMax, large);
  const all: Uint8Array[] = [];
  const bytes = await readChunks(reply, bytesMax, (chunk) => all.push(chunk));
  return joined(all, bytes);
}

async function readOutline(
  reply: UpstreamReply,
  textBytesMax: number,
  { strings, bytesMax }: LargeReply,
): Promise<Buffer> {
  const first: Uint8Array[] = [];
  let rest: ReturnType<typeof createReplyBytes> | null = null;
  const smallMax = largeOver(textBytesMax);
  let bytes = 0;
  await readChunks(reply, bytesMax, (chunk) => {
    bytes += chunk.byteLength;
    if (rest === null) first.push(chunk);
    else rest.push(chunk);
    if (rest !== null || bytes <= smallMax) return;
    rest = createReplyBytes(declaredBytes(reply), bytesMax);
    for (const one of first.splice(0)) rest.push(one);
  });
  if (bytes <= smallMax) return joined(first, bytes);
  const text = await markLargeStrings(await inTurns(rest!.take()), strings);
  if (text.byteLength <= textBytesMax) return text;
  throw tooLarge(`the answer of the provider without its files is larger than ${textBytesMax} bytes`, {
    status: reply.status,
    received: bytes,
  });
}

function declaredBytes({ headers }: UpstreamReply): number | null {
  const declared = Number(headers['content-length'] ?? NaN);
  return Number.isSafeInteger(declared) ? declared : null;
}

/** Reads the body to its end, as fast as the memory for replies has room. Resolves with its size. */
async function readChunks(reply: UpstreamReply, bytesMax: number, take: (chunk: Uint8Array) => void): Promise<number> {
  let bytes = 0;
  for (;;) {
    const reading = reply.ended ? null : reply.read();
    const chunks = reading instanceof Promise ? await reading : reading;
    if (chunks === null) return bytes;
    for (const chunk of chunks) {
      take(chunk);
      bytes += chunk.byteLength;
    }
    if (bytes > bytesMax)
      throw tooLarge(`the answer of the provider is larger than ${bytesMax} bytes`, {
        status: reply.status,
        received: bytes,
      });
    const room = reply.memory?.keeps(bytes) ?? null;
    if (room !== null) await room;
  }
}

const joined = (chunks: readonly Uint8Array[], bytes: number): Buffer =>
  chunks.length === 1 ? asBuffer(chunks[0]!) : Buffer.concat(chunks, bytes);

const asBuffer = (chunk: Uint8Array) =>
  Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
