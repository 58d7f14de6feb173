import { createHmac, hkdfSync, type Hmac, timingSafeEqual } from 'node:crypto';
import { createSealedTexts } from '#wire';

/** Whose thoughts they are: they go back to the same account and the same model alone. */
export interface ThinkingOf {
  readonly account: string;
  readonly model: string;
}

/** Signs what a model thought. The client carries it, and the model gets it back as it was. */
export interface SealedThinking {
  /** A signature of a text that is shown, piece by piece. */
  signing(of: ThinkingOf): { add(text: string): void; signature(): string };
  /** A signature that holds the text, which is not shown. */
  seal(of: ThinkingOf, text: string): string;
  /** The text of a signature with what was shown beside it; null where we did not make it, or for another one. */
  open(of: ThinkingOf, shown: string, signature: string): string | null;
}

const SIGNED = 'tg1.';
const SEALED = 'tg2.';
/** Whether a signature is of this gateway's kind: no other service reads it. */
export const isSealedHere = (signature: unknown): boolean =>
  typeof signature === 'string' && (signature.startsWith(SIGNED) || signature.startsWith(SEALED));

/** A character outside of the basic plane may come in two halves, which UTF-8 has no bytes for. */
const UNITS = 'utf16le';

/** `secret`: 32 bytes that all gateways of one database share. */
export function createSealedThinking(secret: Uint8Array): SealedThinking {
  const texts = createSealedTexts(secret);
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'signatures of thinking', 32));
  const named = ({ account, model }: ThinkingOf) => JSON.stringify([account, model]);
  const signer = (of: ThinkingOf): Hmac => createHmac('sha256', key).update(named(of)).update('\0');
  return {
    signing(of) {
      const mac = signer(of);
      return {
        add: (text) => void mac.update(text, UNITS),
        signature: () => SIGNED + mac.digest('base64url'),
      };
    },
    seal: (of, text) => SEALED + texts.seal(named(of), text),
    open(of, shown, signature) {
      if (signature.startsWith(SEALED)) return texts.open(named(of), signature.slice(SEALED.length));
      if (!signature.startsWith(SIGNED)) return null;
      const given = Buffer.from(signature.slice(SIGNED.length), 'base64url');
      const right = signer(of).update(shown, UNITS).digest();
      return given.length === right.length && timingSafeEqual(given, right) ? shown : null;
    },
  };
}
