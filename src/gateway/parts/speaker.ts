import type { Primitive } from '#config';
import type { Caller, Offer } from '../call.ts';
import type { CallRequest } from '../call-request.ts';
import type { PartsTurn } from './part.ts';

/** A question of a door to a primitive of another protocol. */
export interface PartsAsk {
  /** At least one; the last is the user's. */
  readonly turns: readonly PartsTurn[];
  /** Arguments that the door has as an object, for a tool; null where there are only parts. */
  readonly arguments: Readonly<Record<string, unknown>> | null;
  /** An agent's context or task to go on with; null to begin. */
  readonly contextId: string | null;
  readonly taskId: string | null;
  /** Most tokens of the answer; null for the primitive's own bound. */
  readonly maxTokens: number | null;
  readonly stream: boolean;
}

/** The door's side of the call, neutral. */
export interface AskContext {
  readonly caller: Caller;
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly wantsReceipt: boolean;
}

/** A description of one of them, for clients that have not asked it yet. */
export interface Spoken {
  readonly displayName: string;
  /** May be empty. */
  readonly description: string;
  /** Its offers, at the prices of its calls. Not empty. */
  readonly offers: readonly Offer[];
  /** Media types of the parts that it takes and gives, the usual one first. */
  readonly inputModes: readonly string[];
  readonly outputModes: readonly string[];
}

/**
 * A primitive that can be spoken to in parts, whatever its protocol: what a bridge is made of. The door prepares
 * and runs the call as any other, so that it is billed as one of the primitive. Its data frames hold PartsEvents
 * (encodePartsEvent), the tail of its settled frame is a PartsEnd.
 */
export interface Speaker {
  readonly primitive: Primitive;
  /**
   * Whether there is a service of this name (`weather`, `gpt-mini`; for tools `service/tool`), for the choice of a
   * door.
   */
  has(name: string): boolean;
  /** Names of what can be asked, sorted, with a sentence on each; at most `limit`. */
  list(limit: number): readonly { readonly name: string; readonly displayName: string; readonly description: string }[];
  /** Describes one; null for an unknown name. Absent where the primitive's own protocol does. */
  about?(name: string): Promise<Spoken | null>;
  /**
   * Rejects with GatewayError `invalid_model` for an unknown name, `invalid_request` or `unprocessable` for what
   * the primitive cannot be asked.
   */
  toCall(name: string, ask: PartsAsk, context: AskContext): Promise<CallRequest>;
}

/**
 * The primitives that can be spoken to, by the prefix that another protocol's door has for their names:
 * `a2a/weather`, `mcp/files/read`, `model/gpt-mini`.
 */
export interface Speakers {
  readonly a2a: Speaker;
  readonly mcp: Speaker;
  readonly model: Speaker;
  readonly image: Speaker;
  readonly video: Speaker;
}

/** `a2a/weather` → the agents' speaker and `weather`; null for a name without a prefix that is known. */
export function speakerOf(
  speakers: Partial<Speakers>,
  name: string,
): { readonly speaker: Speaker; readonly name: string } | null {
  const slash = name.indexOf('/');
  const prefix = slash === -1 ? '' : name.slice(0, slash);
  const speaker = Object.hasOwn(speakers, prefix) ? speakers[prefix as keyof Speakers] : undefined;
  return speaker === undefined ? null : { speaker, name: name.slice(slash + 1) };
}
