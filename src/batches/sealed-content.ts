import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import { createSealedTexts } from '#security';

// In other threads, so that a large file does not hold up calls.
const pack = promisify<Uint8Array, Buffer>(deflateRaw);
const unpack = promisify<Uint8Array, Buffer>(inflateRaw);

/** The encryption of files and of what belongs to batches. Each account has its own. */
export interface SealedContent {
  /** Compresses bytes, then encrypts them. */
  seal(account: string, bytes: Uint8Array): Promise<Buffer>;
  /** Rejects with UnreadableContent. */
  open(account: string, sealed: Uint8Array): Promise<Buffer>;
  sealText(account: string, text: string): string;
  /** null if the text was sealed by a gateway with another identity. */
  openText(account: string, sealed: string): string | null;
}

/** The content was sealed by a gateway with another identity. */
export class UnreadableContent extends Error {
  override readonly name = 'UnreadableContent';
}

/** `secret`: 32 bytes that all gateways of one database share. */
export function createSealedContent(secret: Uint8Array): SealedContent {
  const texts = createSealedTexts(secret);
  const ownerOf = (account: string) => `files of ${account}`;
  return {
    seal: async (account, bytes) => texts.sealBytes(ownerOf(account), await pack(bytes)),
    async open(account, sealed) {
      const packed = texts.openBytes(ownerOf(account), sealed);
      if (packed === null) throw new UnreadableContent('a file was sealed by a gateway with another identity');
      return unpack(packed);
    },
    sealText: (account, text) => texts.seal(ownerOf(account), text),
    openText: (account, sealed) => texts.open(ownerOf(account), sealed),
  };
}
