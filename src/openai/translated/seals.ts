import type { JsonObject } from '#wire';
import type { EchoedToolCall, SealedCalls } from '../chat/reply/echo-fields.ts';
import type { SealedThinking, ThinkingOf } from '../chat/reply/sealed-thinking.ts';

export interface SealsDeps {
  readonly thinking: SealedThinking;
  readonly calls: SealedCalls;
}

/** Seals what a provider wants back, and opens what a client sends back, for one account and model. */
export class Seals {
  readonly #thinking: SealedThinking;
  readonly #owner: ThinkingOf;
  readonly #sealedCalls: SealedCalls;
  #openedCalls: ReturnType<SealedCalls> | null = null;

  constructor({ thinking, calls }: SealsDeps, owner: ThinkingOf) {
    this.#thinking = thinking;
    this.#owner = owner;
    this.#sealedCalls = calls;
  }

  /** Signs a text that the client sees, see SealedThinking. */
  signing(): ReturnType<SealedThinking['signing']> {
    return this.#thinking.signing(this.#owner);
  }

  /** A signature that contains the members, because the client does not see the thinking. */
  seal(members: JsonObject): string {
    return this.#thinking.seal(this.#owner, members);
  }

  /** The members that a signature belongs to; null if this gateway did not make it for this owner and text. */
  thought(shownText: string, signature: string): JsonObject | null {
    return this.#thinking.open(this.#owner, shownText, signature);
  }

  /** The client's id of a call, with the members that its provider wants back. */
  sealCall(id: string, call: JsonObject, message: JsonObject): string {
    return this.#calls.seal(id, call, message);
  }

  /** The call behind an id that the client got. */
  call(id: string): EchoedToolCall {
    return this.#calls.open(id);
  }

  /** Whether the id of a call contains these members of its message. */
  holds(members: JsonObject, callId: string): boolean {
    return this.#calls.holds(members, callId);
  }

  get #calls(): ReturnType<SealedCalls> {
    return (this.#openedCalls ??= this.#sealedCalls(this.#owner));
  }
}
