import type { JsonObject } from '#wire';
import { isSealedCall, plainId } from '../chat/reply/echo-fields.ts';
import type { WireRequest } from '../translated/wire-request.ts';

/*
 * What a provider wants back travels in the signatures of parts, which clients of the Gemini API return unchanged. A
 * signature is bytes there, so the gateway's texts are in base64.
 */

interface SignedCall {
  readonly id: string;
  /** Absent if its provider wants nothing back. */
  readonly thoughtSignature?: string;
}

/** `id`: the provider's id, or one of the gateway that contains what its provider wants back. */
export const signedCall = (id: string): SignedCall =>
  isSealedCall(id) ? { id: plainId(id), thoughtSignature: toSignature(id) } : { id };

export const toSignature = (text: string): string => Buffer.from(text).toString('base64');

/** The text in a signature. Another service may have made it, so it may be any text. */
export const textInSignature = (signature: string): string => Buffer.from(signature, 'base64').toString('latin1');

type Seals = WireRequest['seals'];

/** The members that a signature belongs to; null if this gateway did not sign it for this owner. */
export const signedThought = (seals: Seals, shownText: string, signature: string): JsonObject | null =>
  seals.thought(shownText, textInSignature(signature));

/** The call in a signature; null for a signature that this gateway did not make. */
export function callInSignature(seals: Seals, signature: string): ReturnType<Seals['call']> | null {
  const id = textInSignature(signature);
  return isSealedCall(id) ? seals.call(id) : null;
}
