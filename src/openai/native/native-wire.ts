import type { IncomingHttpHeaders } from 'node:http';
import type { NativeWireName } from '#config';
import type { NativeSpeech } from './native-speech.ts';

type Json = Readonly<Record<string, unknown>>;

export type Lists = (name: string) => boolean;

/** A part of a request as a provider gets it, with the names of what it does not get. */
export interface Kept<T> {
  readonly sent: T;
  readonly dropped: readonly string[];
}

/** The request of a wire that some providers speak themselves, as far as the gateway acts on it. */
export interface NativeWire {
  readonly name: NativeWireName;
  /** Path below the base address of a provider. */
  readonly path: string;
  /** Field with the most tokens of the answer. */
  readonly cap: string;
  /** Field with the conversation. */
  readonly prompt: string;
  /** Whether a provider gets an element of the conversation in words alone, without what it names. */
  isRetold(element: unknown): boolean;
  /** Names of the published fields. A model that lists what it takes beside them gets no other. */
  readonly fields: ReadonlySet<string>;
  /** Headers of the client that the provider gets. `lists`: whether the model lists a name in `params.forward`. */
  headers(client: IncomingHttpHeaders, lists: Lists): Kept<Readonly<Record<string, string>>>;
  /** Fields of the request that the provider gets otherwise, as JSON text; null for those that it does not get. */
  changed(asked: Json, text: string, lists: Lists): Kept<Readonly<Record<string, string | null>>>;
  /**
   * The prompt has tokens that no byte of the request shows: what tools say that the provider runs for the model, and
   * documents that it fetches or unpacks.
   */
  hidesPrompt(asked: Json): boolean;
  /** The request has parts that a translation loses without a name for them. */
  loses(text: string): boolean;
  /** Reads the replies of one call. `model` is the name that they carry. */
  speech(model: string): NativeSpeech;
}

/** A request that goes to providers of its own wire as it came. */
export interface NativeAsked {
  readonly wire: NativeWire;
  /** The client's body, which JSON.parse accepts. */
  readonly text: string;
  readonly asked: Json;
  /** The model as the client named it. */
  readonly model: string;
  /** Headers of the client. */
  readonly headers: IncomingHttpHeaders;
  /** A translation loses something: providers that speak the wire are asked first. */
  readonly isLossy: boolean;
  /** Why it cannot be translated; null where it can be. Throws where a provider does not speak the wire. */
  readonly untranslatable: Error | null;
}
