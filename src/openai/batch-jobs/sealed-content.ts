import { promisify } from 'node:util';
import { createInflateRaw, deflateRaw, inflateRaw } from 'node:zlib';
import { createSealedTexts, type SealedTexts, type SealSecret } from '#security';
import { ownTurn } from '#wire';

// In other threads, so that a large file does not hold up calls.
const pack = promisify<Uint8Array, Buffer>(deflateRaw);
const unpack = promisify<Uint8Array, Buffer>(inflateRaw);

/** The encryption of files and of what belongs to batches. Each account has its own. */
export interface SealedContent {
  /** Compresses bytes, then encrypts them. */
  seal(account: string, bytes: Uint8Array): Promise<Buffer>;
  /** Rejects with UnreadableContent. */
  open(account: string, sealed: Uint8Array): Promise<Buffer>;
  /** The same in pieces of at most 256 KiB, each made when it is asked for. Rejects with UnreadableContent. */
  pieces(account: string, sealed: Uint8Array): AsyncIterable<Buffer>;
  sealText(account: string, text: string): string;
  /** null if the text was sealed by a gateway with another identity. */
  openText(account: string, sealed: string): string | null;
}

/** The content was sealed by a gateway with another identity. */
export class UnreadableContent extends Error {
  override readonly name = 'UnreadableContent';
}

const PIECE_BYTES = 256 * 1024;
/** A buffer for more than the content of small bytes would be wasted. */
const pieceBytesFor = (packed: number): number => Math.min(PIECE_BYTES, Math.max(16 * 1024, 4 * packed));

/** `secret`: 32 bytes that all gateways of one database share. */
export function createSealedContent(secret: SealSecret): SealedContent {
  const texts = createSealedTexts(secret);
  const ownerOf = (account: string) => `files of ${account}`;
  return {
    seal: async (account, bytes) => texts.sealBytes(ownerOf(account), await pack(bytes)),
    async open(account, sealed) {
      const packed = texts.openBytes(ownerOf(account), sealed);
      if (packed === null) throw unreadable();
      return unpack(packed);
    },
    pieces: (account, sealed) => inflated(texts.openInTurns(ownerOf(account), sealed, ownTurn), sealed.byteLength),
    sealText: (account, text) => texts.seal(ownerOf(account), text),
    openText: (account, sealed) => texts.open(ownerOf(account), sealed),
  };
}

async function* inflated(
  opening: ReturnType<SealedTexts['openInTurns']>,
  sealedBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  const packed = await opening;
  if (packed === null) throw unreadable();
  const inflate = createInflateRaw({ chunkSize: pieceBytesFor(sealedBytes) });
  for (const piece of packed) inflate.write(piece);
  inflate.end();
  yield* inflate as AsyncIterable<Buffer>;
}

const unreadable = () => new UnreadableContent('a file was sealed by a gateway with another identity');
