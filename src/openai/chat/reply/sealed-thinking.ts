import type { JsonObject } from '#wire';
import { createHmac, hkdfSync, type Hmac, timingSafeEqual } from 'node:crypto';
import { createSealedTexts, secretsOf, type SealSecret } from '#security';

/** The owner of the thinking. It goes back only to the same account and the same model. */
export interface ThinkingOf {
  readonly account: string;
  readonly model: string;
}

/**
 * Signs the thinking of a model. The client stores it, and the model gets it back unchanged, with all members of the
 * message that its provider wants back (see `EchoFields`).
 */
export interface SealedThinking {
  /**
   * Signs a text that the client sees, piece by piece. The signature contains the members, except for the text itself.
   * Without members, the text goes back as `reasoning_content`.
   */
  signing(owner: ThinkingOf): { add(text: string): void; signature(members: JsonObject): string };
  /** A signature that contains the members, because the client does not see the thinking. */
  seal(owner: ThinkingOf, members: JsonObject): string;
  /**
   * Returns the members that a signature belongs to. `shownText`: the text with it. Returns null if this gateway
   * did not make the signature for this owner and text.
   */
  open(owner: ThinkingOf, shownText: string, signature: string): JsonObject | null;
}

const SIGNED = 'tg1.';
const SEALED = 'tg2.';
/** Whether a signature has this gateway's format, which no other service reads. */
export const isSealedHere = (signature: unknown): boolean =>
  typeof signature === 'string' && (signature.startsWith(SIGNED) || signature.startsWith(SEALED));

/** A character outside of the basic plane may arrive in two halves, which UTF-8 cannot encode. */
const UNITS = 'utf16le';
/** Begins a sealed text that is JSON. A sealed text without it is the thinking itself, as earlier versions wrote it. */
const MEMBERS = '\0';
/** Stands in the members for the text that the client sees. */
const SHOWN = '\0shown';

interface Sealed {
  readonly members: JsonObject;
  /** Of the text that the client sees; absent if it sees none. */
  readonly digest?: string;
}

/** `secret`: 32 bytes that all gateways of one database share. */
export function createSealedThinking(secret: SealSecret): SealedThinking {
  const texts = createSealedTexts(secret);
  const keys = secretsOf(secret).map((one) => Buffer.from(hkdfSync('sha256', one, '', 'signatures of thinking', 32)));
  const ownerName = ({ account, model }: ThinkingOf) => JSON.stringify([account, model]);
  const signer = (owner: ThinkingOf, key = keys[0]!): Hmac =>
    createHmac('sha256', key).update(ownerName(owner)).update('\0');
  const digestOf = (owner: ThinkingOf, text: string, key = keys[0]!): string =>
    signer(owner, key).update(text, UNITS).digest('base64url');
  const isOf = (owner: ThinkingOf, text: string, digest: string): boolean =>
    keys.some((key) => isSame(digest, digestOf(owner, text, key)));
  const sealed = (owner: ThinkingOf, inside: Sealed): string =>
    SEALED + texts.seal(ownerName(owner), MEMBERS + JSON.stringify(inside));

  return {
    signing(owner) {
      const mac = signer(owner);
      let length = 0;
      return {
        add(text) {
          mac.update(text, UNITS);
          length += text.length;
        },
        signature(members) {
          const digest = mac.digest('base64url');
          const isShown = (value: unknown): boolean =>
            typeof value === 'string' && value !== '' && value.length === length && digestOf(owner, value) === digest;
          const names = Object.keys(members);
          if (names.length === 0 || (names.length === 1 && isShown(members['reasoning_content'])))
            return SIGNED + digest;
          return sealed(owner, { members: replaced(members, (value) => (isShown(value) ? SHOWN : value)), digest });
        },
      };
    },
    seal: (owner, members) => sealed(owner, { members }),
    open(owner, shownText, signature) {
      if (signature.startsWith(SIGNED))
        return isOf(owner, shownText, signature.slice(SIGNED.length)) ? { reasoning_content: shownText } : null;
      const text = signature.startsWith(SEALED) ? texts.open(ownerName(owner), signature.slice(SEALED.length)) : null;
      if (text === null) return null;
      if (!text.startsWith(MEMBERS)) return { reasoning_content: text };
      const { members, digest } = JSON.parse(text.slice(MEMBERS.length)) as Sealed;
      if (digest === undefined) return members;
      return isOf(owner, shownText, digest)
        ? replaced(members, (value) => (value === SHOWN ? shownText : value))
        : null;
    },
  };
}

/** The members with their texts replaced, also in their lists. */
const replaced = (members: JsonObject, replace: (value: unknown) => unknown): JsonObject => {
  const all = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map((one) =>
          typeof one === 'object' && one !== null ? replaced(one as JsonObject, replace) : replace(one),
        )
      : replace(value);
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, all(value)]));
};

function isSame(signature: string, right: string): boolean {
  const [one, other] = [Buffer.from(signature), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}
