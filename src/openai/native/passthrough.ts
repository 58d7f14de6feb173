import type { IncomingHttpHeaders } from 'node:http';
import type { NativeWireName } from '#config';
import type { RefusedFields } from '#call/refused-fields';
import type { Offer } from '#catalog';
import type { GatewayError } from '#errors';
import type { PaidExtra } from '../chat/price/paid-extras.ts';
import type { OutputSize } from './output-size.ts';
import type { AskedParts } from '../chat/price/priced-parts.ts';
import type { Sound } from '../chat/request/sound.ts';
import { isObject, RawJsonError, spanAt, splice, withMembers, type JsonObject } from '#wire';
import { toHttpError } from '#http';

export type Lists = (name: string) => boolean;

/** A part of a request as a provider gets it, and the names of what the provider does not get. */
interface SentPart<T> {
  readonly sent: T;
  readonly dropped: readonly string[];
  /** Names of the fields that the gateway itself has added. Absent: none. */
  readonly added?: readonly string[];
}

/** The cap of the answer at one offer. */
export interface NativeCap {
  /** No field may ask for more tokens than this. */
  readonly tokens: number;
  /** The field of the cap gets this value. Otherwise the client's own value stays. */
  readonly isSet: boolean;
}

/** The client's cap in a request; null without one. */
export function capIn(wire: Passthrough, requestBody: JsonObject): number | null {
  if (wire.capIn !== undefined) return wire.capIn(requestBody);
  const cap = requestBody[wire.cap];
  return typeof cap === 'number' ? cap : null;
}

const NO_HEADERS: ReturnType<NonNullable<Passthrough['headers']>> = { sent: {}, dropped: [] };

export const headersFor = (wire: Passthrough, client: IncomingHttpHeaders, lists: Lists) =>
  wire.headers?.(client, lists) ?? NO_HEADERS;

/** A wire that some providers speak themselves: the parts of its requests that the gateway acts on. */
export interface Passthrough {
  readonly name: NativeWireName;
  /** Name of the field that has the cap of the answer, in tokens. */
  readonly cap: string;
  /** The client's cap; null without one. Absent: the field of the cap is the number of tokens itself. */
  capIn?(requestBody: JsonObject): number | null;
  /** The changes to the field of the cap for one offer, as `changed` gives them. Absent: see `capIn`. */
  capped?(requestBody: JsonObject, cap: NativeCap, lists: Lists): SentPart<Readonly<Record<string, string | null>>>;
  /** Fields of `requestBody` that the address of a request says instead of its body. Absent: none. */
  readonly addressed?: ReadonlySet<string>;
  readonly prompt: string;
  /** The end of the path at a provider, after that of the wire. Absent: none. */
  readonly below?: string;
  /** Throws GatewayError `unprocessable` for an offer that speaks the wire, and cannot serve this request. */
  refuse?(offer: Offer): void;
  /**
   * Whether a provider gets an element of the conversation only as text, without the thing that the element refers
   * to. Absent: none.
   */
  isRetold?(element: unknown): boolean;
  /** Names of the published fields. A model that lists further fields gets only these and the listed ones. */
  readonly fields: ReadonlySet<string>;
  /**
   * Headers of the client that the provider gets. `lists`: whether the model lists a name in `params.forward`. Absent:
   * none.
   */
  headers?(client: IncomingHttpHeaders, lists: Lists): SentPart<Readonly<Record<string, string>>>;
  /**
   * The fields that are changed for the provider, as JSON text; null for fields that it does not get. `refused`: what
   * the gateway does not add for the offer.
   */
  changed(
    requestBody: JsonObject,
    text: string,
    lists: Lists,
    offer: Offer,
    refused: RefusedFields,
  ): SentPart<Readonly<Record<string, string | null>>>;
  /** Name of the field with which the gateway limits searches where the client does not. Absent: none does. */
  readonly searchLimit?: string;
  /** The offer refused a request with this status. Absent: nothing is learnt from that alone. */
  refused?(offer: Offer, status: number): void;
  /** Whether the prompt has tokens that are not in the request: documents that the provider fetches or unpacks. */
  hidesPrompt(requestBody: JsonObject): boolean;
  /** Whether the provider may run tools for the model, whose results are added to the prompt. */
  growsPrompt(requestBody: JsonObject): boolean;
  /** The tools and kinds of output of the request that cost money of their own. */
  extras(requestBody: JsonObject): readonly PaidExtra[];
  /** The parts that the request asks for besides text. */
  asks(requestBody: JsonObject, text: string): AskedParts;
  /** The pictures in the conversation. Absent: they are those of blocks and items with a `type`. */
  pictures?(prompt: unknown): Pictures;
  /** The sound in the conversation, see PromptSize. Absent: the wire has none. */
  sound?(prompt: unknown): Sound | null;
  /** Whether the request has parts that a translation loses without naming them. */
  loses(text: string): boolean;
  /** Reads the replies of the call with this id. `model` is the name that they carry. */
  decoder(model: string, callId: string): NativeDecoder;
}

/** The number of images in a conversation, and the bytes of their base64. */
export interface Pictures {
  readonly images: number;
  readonly bytes: number;
}

/** A request that is sent unchanged to providers of its own wire. */
export interface NativeRequestFacts {
  readonly wire: Passthrough;
  /** The client's body, which JSON.parse accepts. */
  readonly text: string;
  readonly requestBody: JsonObject;
  /** `requestBody` has fewer `tools` than the text. */
  readonly fewerTools?: true;
  readonly model: string;
  readonly headers: IncomingHttpHeaders;
  /** A translation loses something, so providers that speak the wire are asked first. */
  readonly isLossy: boolean;
  /** Why the request cannot be translated; null if it can. It is thrown for a provider that does not speak the wire. */
  readonly untranslatable: Error | null;
}

export interface NativeEnd {
  /** `cost` and `cost_details`; empty if the cost is not known. */
  readonly cost: JsonObject;
  /** The billed usage, in the form of chat: `prompt_tokens` and `completion_tokens`. */
  readonly usage: JsonObject;
  /** The billed usage differs from the claimed usage. */
  readonly isCorrected: boolean;
  /** Why the reply was cut. The part that came is charged. null for a whole reply. */
  readonly cut: GatewayError | null;
  /** The reply ran past its budget or was cut, so its own end is missing. */
  readonly isBroken: boolean;
}

/** Reads the replies of one wire, as far as it is needed to bill and to end them. Each attempt has its own. */
export interface NativeDecoder {
  /** Events have no `type`, and no line that names one. Absent: they have both. */
  readonly isUntyped?: true;
  /** The provider's claim so far, in the form of chat; null before a claim. */
  readonly claim: JsonObject | null;
  /** The service tier that the reply names so far, also before its claim; null without one. */
  readonly serviceTier: string | null;
  /** Web searches that the reply shows so far, which a claim may tell only at its end. */
  readonly webSearches: number;
  /** Why the reply ended, in the provider's words. */
  readonly finish: string | null;
  /** No further event follows. */
  readonly isOver: boolean;
  /**
   * Takes an event of a stream. Returns the JSON text that goes out instead, which usually is `text` itself. Returns
   * null for an event that is held for the end. Throws UpstreamFailure for an error, and for something that is no
   * event of the wire. `type`: empty for untyped events.
   */
  take(type: string, event: JsonObject, text: string): string | null;
  addSize(type: string, event: JsonObject, size: OutputSize): void;
  /** Whether an event that was taken only begins an answer or a part of it. An error may still follow it. */
  opens(type: string, event: JsonObject): boolean;
  /**
   * The last events of a stream. `sequence`: the last number in the events that passed without `take`; null without
   * one.
   */
  last(end: NativeEnd, sequence: number | null): string;
  /** The member of a reply that is not streamed that has its usage. */
  readonly usageMember: 'usage' | 'usageMetadata';
  /** Takes the usage of a reply that is not read otherwise. */
  takeUsage(claimedUsage: JsonObject): void;
  /**
   * Takes a reply that is not streamed, and adds its output to `size`. Throws UpstreamFailure if it is no reply of the
   * wire.
   */
  takeWhole(reply: JsonObject, size: OutputSize): void;
  /** The whole reply, with its cost. `text` is what the provider wrote. */
  whole(text: string, reply: JsonObject, end: NativeEnd): string;
  /** A whole reply that was cut, with the text that came. */
  cutWhole(writtenText: string, end: NativeEnd): string;
}

/** The reason why a reply was cut, as a member of its end. */
export const noteOf = (cut: GatewayError | null): object =>
  cut === null ? {} : { tollgate: { note: toHttpError(cut).body.error } };

export const eventText = (type: string, data: string): string => `event: ${type}\ndata: ${data}\n\n`;

/** A longer text is spliced, because serialising all of it twice takes longer than scanning it. */
const REWRITTEN_CHARS_MAX = 16 * 1024;

/**
 * Sets members in a JSON text: in its object `name`, or at the top if `name` is null. `parsed` is the parsed text.
 * The rest of the text keeps its spelling. Returns the same text if the object is missing or has a duplicate key.
 */
export function withMembersOf(text: string, parsed: JsonObject, name: string | null, members: JsonObject): string {
  const object = name === null ? parsed : parsed[name];
  if (!isObject(object)) return text;
  // Most providers write exactly what JSON.stringify writes. Then serialising again does not change the rest.
  if (text.length <= REWRITTEN_CHARS_MAX && JSON.stringify(parsed) === text) {
    const changed = { ...object, ...members };
    return JSON.stringify(name === null ? changed : { ...parsed, [name]: changed });
  }
  const span = spanAt(text, name === null ? [] : [name]);
  if (span === null) return text;
  const written = Object.entries(members).map(([key, value]) => [key, JSON.stringify(value)]);
  try {
    return splice(text, [withMembers(text, span, Object.fromEntries(written) as Record<string, string>)]);
  } catch (error) {
    if (error instanceof RawJsonError) return text;
    throw error;
  }
}
