import { createHmac, hkdfSync, type Hmac, timingSafeEqual } from 'node:crypto';
import { createSealedTexts } from '#wire';

/** The owner of the thinking. It goes back only to the same account and the same model. */
export interface ThinkingOf {
  readonly account: string;
  readonly model: string;
}

/** Signs the thinking of a model. The client stores it, and the model gets it back unchanged. */
export interface SealedThinking {
  /** Signs a text that the client sees, piece by piece. */
  signing(of: ThinkingOf): { add(text: string): void; signature(): string };
  /** A signature that contains the text, because the client does not see the text. */
  seal(of: ThinkingOf, text: string): string;
  /**
   * Returns the text that a signature belongs to: `shown`, or the text inside the signature. Returns null if this
   * gateway did not make the signature for this owner and text.
   */
  open(of: ThinkingOf, shown: string, signature: string): string | null;
}

const SIGNED = 'tg1.';
const SEALED = 'tg2.';
/** Whether a signature has this gateway's format, which no other service reads. */
export const isSealedHere = (signature: unknown): boolean =>
  typeof signature === 'string' && (signature.startsWith(SIGNED) || signature.startsWith(SEALED));

/** A character outside of the basic plane may arrive in two halves, which UTF-8 cannot encode. */
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
