import type { JsonObject } from '#wire';
import type { Citation, FilePart, TextPart } from '#bridge';
import type { FinishReason } from './finish-reason.ts';

export interface ChatFault {
  readonly message: string;
  /** Type of the error on the chat wire, such as `provider_unavailable`. */
  readonly type: string;
  /** HTTP status. */
  readonly code: number;
}

/** The error of a reply that its provider ended with a failure. */
export const MODEL_FAILED: ChatFault = {
  message: 'The model ended with an error',
  type: 'provider_unavailable',
  code: 500,
};

export interface ChatEnd {
  readonly finish: FinishReason | null;
  /** The sequence that ended the reply; null where the provider names none. */
  readonly stopSequence: string | null;
  /** `usage` of the chat wire, with its cost if the call was settled; null if the reply failed before. */
  readonly usage: JsonObject | null;
  readonly fault: ChatFault | null;
  readonly tollgate: unknown;
}

export interface ChatSaid {
  readonly citations: readonly Citation[];
  readonly thinking: string;
  /** The members of the message that its provider wants back: its thinking in its own form. */
  readonly members: JsonObject;
  readonly text: string;
  /** The same text, with the files that stand in it as text. */
  readonly parts: readonly (TextPart | FilePart)[];
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
}
