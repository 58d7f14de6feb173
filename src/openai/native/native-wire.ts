import type { IncomingHttpHeaders } from 'node:http';
import type { NativeWireName } from '#config';
import type { Offer } from '#gateway';
import type { NativeSpeech } from './native-speech.ts';

type Json = Readonly<Record<string, unknown>>;

export type Lists = (name: string) => boolean;

/** A part of a request as a provider gets it, and the names of what the provider does not get. */
export interface Kept<T> {
  readonly sent: T;
  readonly dropped: readonly string[];
}

/** A wire that some providers speak themselves: the parts of its requests that the gateway acts on. */
export interface NativeWire {
  readonly name: NativeWireName;
  /** Path below the base address of a provider. */
  readonly path: string;
  /** Name of the field with the cap of the answer, in tokens. */
  readonly cap: string;
  /** Name of the field with the conversation. */
  readonly prompt: string;
  /**
   * Whether a provider gets an element of the conversation only as text, without the thing that the element refers
   * to.
   */
  isRetold(element: unknown): boolean;
  /** Names of the published fields. A model that lists further fields gets only these and the listed ones. */
  readonly fields: ReadonlySet<string>;
  /** Headers of the client that the provider gets. `lists`: whether the model lists a name in `params.forward`. */
  headers(client: IncomingHttpHeaders, lists: Lists): Kept<Readonly<Record<string, string>>>;
  /** The fields that are changed for the provider, as JSON text; null for fields that it does not get. */
  changed(asked: Json, text: string, lists: Lists, offer: Offer): Kept<Readonly<Record<string, string | null>>>;
  /**
   * The offer refused the request with this status and body. Returns true if `changed` now gives another request for
   * it. Absent: never.
   */
  reform?(offer: Offer, status: number, answer: Uint8Array): boolean;
  /**
   * Whether the prompt has tokens that are not in the request: results of tools that the provider runs for the
   * model, and documents that the provider fetches or unpacks.
   */
  hidesPrompt(asked: Json): boolean;
  /** Whether the request has parts that a translation loses without naming them. */
  loses(text: string): boolean;
  /** Reads the replies of the call with this id. `model` is the name that they carry. */
  speech(model: string, callId: string): NativeSpeech;
}

/** A request that is sent unchanged to providers of its own wire. */
export interface NativeRequestFacts {
  readonly wire: NativeWire;
  /** The client's body, which JSON.parse accepts. */
  readonly text: string;
  readonly asked: Json;
  /** The model as the client named it. */
  readonly model: string;
  /** Headers of the client. */
  readonly headers: IncomingHttpHeaders;
  /** A translation loses something, so providers that speak the wire are asked first. */
  readonly isLossy: boolean;
  /** Why the request cannot be translated; null if it can. It is thrown for a provider that does not speak the wire. */
  readonly untranslatable: Error | null;
}
