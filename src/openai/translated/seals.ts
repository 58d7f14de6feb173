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

  seal(members: JsonObject): string {
    return this.#thinking.seal(this.#owner, members);
  }

  thought(shownText: string, signature: string): JsonObject | null {
    return this.#thinking.open(this.#owner, shownText, signature);
  }

  sealCall(id: string, call: JsonObject, message: JsonObject): string {
    return this.#calls.seal(id, call, message);
  }

  call(id: string): EchoedToolCall {
    return this.#calls.open(id);
  }

  holds(members: JsonObject, callId: string): boolean {
    return this.#calls.holds(members, callId);
  }

  get #calls(): ReturnType<SealedCalls> {
    return (this.#openedCalls ??= this.#sealedCalls(this.#owner));
  }
}
