import { type GatewayError, isObject, RawJsonError, spanAt, splice, toHttpError, withMembers } from '#wire';

type Json = Readonly<Record<string, unknown>>;

/** The end of a native reply, once it is settled. */
export interface NativeEnd {
  /** `cost` and `cost_details`; empty where nothing is known of it. */
  readonly cost: Json;
  /** The use that is billed, as chat has it: `prompt_tokens` and `completion_tokens`. */
  readonly usage: Json;
  /** The billed use is not the claimed one. */
  readonly isCorrected: boolean;
  /** Why the reply is not whole, though what came is charged; null where it is. */
  readonly cut: GatewayError | null;
  /** The reply ran past its budget, or was cut: its own end is missing. */
  readonly isBroken: boolean;
}

/** The output in an event or a reply. */
export interface EventSize {
  /** Its texts, which the cap is for. */
  readonly texts: readonly string[];
  /** Bytes of other output. */
  readonly other: number;
}

/** Understands the replies of one wire, as far as they are billed and ended by it. One for each attempt. */
export interface NativeSpeech {
  /** The provider's claim so far, as chat has it; null before one. */
  readonly claim: Json | null;
  /** Why the reply ended, in the provider's words. */
  readonly finish: string | null;
  /** Nothing follows any more. */
  readonly isOver: boolean;
  /**
   * Takes an event of a stream. Returns what goes out in its place, as JSON text, which mostly is `text` itself; null
   * for one that is held for the end. Throws UpstreamFailure for an error, and for what is no event of the wire.
   */
  take(type: string, event: Json, text: string): string | null;
  /** The output in an event that passed. */
  sizeOf(type: string, event: Json): EventSize;
  /** The last events of a stream. `sequence`: the last number in the events that were not taken; null without one. */
  last(end: NativeEnd, sequence: number | null): string;
  /** Takes a reply in one piece. Throws UpstreamFailure for what is no reply of the wire. Returns its output. */
  takeWhole(reply: Json): EventSize;
  /** The reply in one piece, with its cost. `text` is what the provider wrote. */
  whole(text: string, reply: Json, end: NativeEnd): string;
  /** A reply in one piece that was cut, with the texts that came of it. */
  cutWhole(said: string, end: NativeEnd): string;
}

/** The size of what is no output. */
export const NOTHING: EventSize = { texts: [], other: 0 };
/** Marks around an item, or a call of a tool. */
export const FRAME_BYTES = 32;

/** Those of the values that are text. */
export const stringsOf = (...values: readonly unknown[]): string[] =>
  values.filter((value) => typeof value === 'string' && value !== '') as string[];

/** Bytes of a text; 0 of anything else. */
export const bytesOf = (value: unknown): number => (typeof value === 'string' ? Buffer.byteLength(value) : 0);
/** Bytes of all texts. */
export const bytesOfTexts = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
export const jsonBytes = (value: unknown): number =>
  value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value));

export const sumOf = (sizes: readonly EventSize[]): EventSize => ({
  texts: sizes.flatMap(({ texts }) => texts),
  other: sizes.reduce((sum, { other }) => sum + other, 0),
});

/** Why a reply is not whole, as a member of its end. */
export const noteOf = (cut: GatewayError | null): object =>
  cut === null ? {} : { tollgate: { note: toHttpError(cut).body.error } };

/** An event on the wire. */
export const eventText = (type: string, data: string): string => `event: ${type}\ndata: ${data}\n\n`;

/** A longer text is spliced: to write all of it twice takes longer than to pass over it. */
const REWRITTEN_CHARS_MAX = 16 * 1024;

/**
 * A text, which JSON.parse has read as `parsed`, with members set of its object `name`, or of itself where that is
 * null. The rest is spelled as it was. The same text where there is no such object, or one with a key that stands
 * twice.
 */
export function withMembersOf(text: string, parsed: Json, name: string | null, members: Json): string {
  const object = name === null ? parsed : parsed[name];
  if (!isObject(object)) return text;
  // Most providers write what JSON.stringify writes: then it spells all that stays in the same way again.
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
