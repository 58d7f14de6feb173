import { hash } from 'node:crypto';
import { createSealedTexts } from '#wire';
import { NOTHING } from '../reply/echo-fields.ts';
import type { ThinkingOf } from './sealed-thinking.ts';

type Json = Readonly<Record<string, unknown>>;

/** A tool call in the conversation of a client. */
export interface StartedProviderCall {
  /** The provider's own id. */
  readonly id: string;
  /** Members of the call that its provider wants back. */
  readonly call: Json;
  /** Members of the call's message that its provider wants back. */
  readonly message: Json;
}

/**
 * Makes the id that a client gets for a tool call. `call` and `message`: the members of the call and of its message
 * that the provider wants back.
 */
export type ClientId = (id: string, call: Json, message: Json) => string;

/** The ids of tool calls for one account and model. */
interface CallIds {
  /**
   * Returns an id that contains the members, encrypted. Without members, or if the result would be too long, it is
   * the provider's own id.
   */
  readonly seal: ClientId;
  /**
   * The members of another model's call are left out. An id that this gateway did not make for this account stays,
   * but one in the gateway's format becomes short.
   */
  open(id: string): StartedProviderCall;
}

/** Makes the ids of tool calls for an account and a model. */
export type SealedCalls = (of: ThinkingOf) => CallIds;

const SEALED = 'tg3_';
/** Most characters of an id. A client sends each id twice with every later request. */
export const ID_MAX = 16 * 1024;
const DIGEST_CHARS = 24;

/** `secret`: 32 bytes that all gateways of one database share. */
export function createSealedCalls(secret: Uint8Array): SealedCalls {
  const texts = createSealedTexts(secret);
  return ({ account, model }) => {
    // It differs from every owner of thinking, which is JSON.
    const owner = `calls of ${account}`;
    const sealed = (kept: StartedProviderCall): string | null => {
      if (isEmpty(kept.call) && isEmpty(kept.message)) return kept.id;
      const text = JSON.stringify([model, kept]);
      const id = text.length > ID_MAX ? null : SEALED + texts.seal(owner, text);
      return id === null || id.length > ID_MAX ? null : id;
    };
    return {
      seal: (id, call, message) => sealed({ id, call, message }) ?? sealed({ id, call, message: NOTHING }) ?? id,
      open(id) {
        if (!id.startsWith(SEALED)) return { id, call: NOTHING, message: NOTHING };
        const text = id.length > ID_MAX ? null : texts.open(owner, id.slice(SEALED.length));
        if (text === null) return { id: plainId(id), call: NOTHING, message: NOTHING };
        const [of, kept] = JSON.parse(text) as readonly [string, StartedProviderCall];
        return of === model ? kept : { ...kept, call: NOTHING, message: NOTHING };
      },
    };
  };
}

/** A short id in place of a sealed one, because many providers limit ids to 40 or 64 characters. */
export const plainId = (id: string): string =>
  id.startsWith(SEALED) ? `call_${hash('sha256', id).slice(0, DIGEST_CHARS)}` : id;

const isEmpty = (members: Json): boolean => Object.keys(members).length === 0;
