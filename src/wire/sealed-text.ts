import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** Encrypts texts that are stored where others may read them, such as the database and its backups. */
export interface SealedTexts {
  /** `of` names the owner of the text. It must be the same when the text is opened. */
  seal(of: string, text: string): string;
  /** null if the text was sealed with another secret or for another owner. */
  open(of: string, sealed: string): string | null;
}

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** AES-256-GCM. `secret`: 32 bytes that all gateways of one database share. */
export function createSealedTexts(secret: Uint8Array): SealedTexts {
  return {
    seal(of, text) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', secret, iv).setAAD(Buffer.from(of));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
    },
    open(of, sealed) {
      const bytes = Buffer.from(sealed, 'base64url');
      if (bytes.length < IV_BYTES + TAG_BYTES) return null;
      const decipher = createDecipheriv('aes-256-gcm', secret, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      })
        .setAAD(Buffer.from(of))
        .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      try {
        return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString();
      } catch {
        return null;
      }
    },
  };
}
