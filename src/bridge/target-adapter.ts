import type { Primitive } from '#config';
import type { ErrorCode } from '#errors';
import { type LargeStrings, parseExact } from '#wire';
import type { Caller } from '#accounts';
import type { Offer } from '#catalog';
import type { CallRequest } from '#gateway';

/** A part of a message to a primitive or from it. Every protocol has its own form of it. */
export type Part = TextPart | DataPart | FilePart;

interface TextPart {
  readonly kind: 'text';
  readonly text: string;
}

/** A JSON value. */
interface DataPart {
  readonly kind: 'data';
  readonly data: unknown;
}

/** A file. Either `url` or `bytes` (base64) is set. */
export interface FilePart {
  readonly kind: 'file';
  readonly mediaType: string | null;
  readonly name: string | null;
  readonly url: string | null;
  readonly bytes: string | null;
}

/** A file that is too large for an event. */
export interface LargeFile {
  readonly mediaType: string;
  readonly name: string;
  /** Validated base64 of RFC 4648. */
  readonly base64: Uint8Array;
}

/** One turn of a conversation, in parts. */
export interface ContentTurn {
  readonly role: 'system' | 'user' | 'assistant';
  readonly parts: readonly Part[];
}

/** A request of a route to a primitive of another protocol. */
export interface TargetRequest {
  /** At least one. The last turn is the user's. */
  readonly turns: readonly ContentTurn[];
  /** Arguments of a tool, if the route has them as an object; null if there are only parts. */
  readonly arguments: Readonly<Record<string, unknown>> | null;
  /** The agent's context and task that this message continues; null to begin. */
  readonly contextId: string | null;
  readonly taskId: string | null;
  /** Maximum tokens of the answer; null for the primitive's own limit. */
  readonly maxTokens: number | null;
  readonly stream: boolean;
}

/** Facts about the request from the route, independent of the protocol. */
export interface TargetContext {
  readonly caller: Caller;
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly wantsReceipt: boolean;
}

/** The description of a primitive, for clients that have not called it yet. */
export interface ServiceDescription {
  readonly displayName: string;
  /** May be empty. */
  readonly description: string;
  /** Its offers, with the prices that its calls have. Not empty. */
  readonly offers: readonly Offer[];
  /** Media types of the parts that it accepts and returns, the most usual one first. */
  readonly inputModes: readonly string[];
  readonly outputModes: readonly string[];
}

/**
 * A kind of primitive that a route of another protocol can call with parts. Bridges are built on it. The route prepares
 * and runs the call like any other, so it is billed like a call of that primitive. Its data frames hold PartsEvents
 * (encodePartsEvent). The tail of its settled frame is a PartsEnd.
 */
export interface TargetAdapter {
  readonly primitive: Primitive;
  /**
   * Whether a service of this name exists (`weather`, `gpt-mini`; for tools `service/tool`). Used to choose a route.
   */
  has(name: string): boolean;
  /** Names of the services, sorted, with one sentence for each; at most `limit`. */
  list(limit: number): readonly { readonly name: string; readonly displayName: string; readonly description: string }[];
  /** Describes a service; null for an unknown name. Absent if the primitive's own protocol describes it. */
  about?(name: string): Promise<ServiceDescription | null>;
  /**
   * Rejects with GatewayError `invalid_model` for an unknown name, `invalid_request` or `unprocessable` for a request
   * that the primitive cannot serve.
   */
  toCall(name: string, ask: TargetRequest, context: TargetContext): Promise<CallRequest>;
}

/**
 * Target adapters by the prefix that the routes of other protocols use for their names: `a2a/weather`,
 * `mcp/files/read`, `model/gpt-mini`.
 */
export interface TargetAdapters {
  readonly a2a: TargetAdapter;
  readonly mcp: TargetAdapter;
  readonly model: TargetAdapter;
  readonly image: TargetAdapter;
  readonly video: TargetAdapter;
}

/** `a2a/weather` → the target adapter of agents and `weather`; null for a name without a known prefix. */
export function targetOf(
  targets: Partial<TargetAdapters>,
  name: string,
): { readonly target: TargetAdapter; readonly name: string } | null {
  const slash = name.indexOf('/');
  const prefix = slash === -1 ? '' : name.slice(0, slash);
  const target = Object.hasOwn(targets, prefix) ? targets[prefix as keyof TargetAdapters] : undefined;
  return target === undefined ? null : { target, name: name.slice(slash + 1) };
}

/** The next event of an answer: a part (texts that follow each other form one text) or progress. */
export type PartsEvent =
  | { readonly type: 'part'; readonly part: Part }
  /** A sign that the work goes on; not part of the answer. */
  | { readonly type: 'progress'; readonly text: string | null };

/** How the call ended: the tail of a call that was made in parts. */
export interface PartsEnd {
  /**
   * `input`: the given parts ask for more input. `cut`: the gateway ended it early for the reason in `error`, and the
   * part that came is charged. `failed`: it reported a failure itself, in `error`; nothing is charged. `later`: it goes
   * on as the task `taskId` and is charged at the end of the task.
   */
  readonly finish: 'stop' | 'length' | 'input' | 'cut' | 'failed' | 'later';
  readonly error: string | null;
  /**
   * The error code of a failure; default `provider_unavailable`. If a tool reports its own failure, the code is
   * `unprocessable`, because a repeat would fail again.
   */
  readonly errorCode?: ErrorCode;
  /** Files that come after the parts. A route writes them separately from its texts, see `largePart`. Default none. */
  readonly files?: readonly LargeFile[];
  /** An agent's task and context, for the next message. */
  readonly taskId: string | null;
  readonly contextId: string | null;
  /** Token counts; 0 if not reported. */
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** The end of a call, also of one that was ended before anything came. */
export const partsEndOf = (end: { readonly tail: unknown }): PartsEnd =>
  (end.tail as PartsEnd | null) ?? { ...NO_TASK, finish: 'cut', error: null };

/** The end of a call without a task or counted tokens. */
export const NO_TASK: Omit<PartsEnd, 'finish' | 'error'> = {
  taskId: null,
  contextId: null,
  promptTokens: 0,
  completionTokens: 0,
};

/** A large file as a part of an answer. A mark of `large` stands in for its base64. */
export const largePart = ({ mediaType, name, base64 }: LargeFile, large: LargeStrings): FilePart => ({
  kind: 'file',
  mediaType,
  name,
  url: null,
  bytes: large.mark(base64),
});

/** The last turn as a prompt: its texts, with data as JSON, and its files. */
export function lastOf(turns: readonly ContentTurn[]): {
  readonly prompt: string;
  readonly files: readonly FilePart[];
} {
  const parts: readonly Part[] = turns.at(-1)?.parts ?? [];
  const texts = parts.flatMap((part) =>
    part.kind === 'file' ? [] : [part.kind === 'text' ? part.text : JSON.stringify(part.data)],
  );
  return { prompt: texts.join('\n').trim(), files: parts.filter((part) => part.kind === 'file') };
}

const LINE_END = 0x0a;

/** Encodes an event as a line of JSON, for a frame from a target adapter to a route. */
export function encodePartsEvent(event: PartsEvent): Uint8Array {
  return Buffer.from(`${JSON.stringify(event)}\n`);
}

/** Decodes the events of one data frame. A frame has only whole lines. Data keeps numbers that a double cannot hold. */
export function decodePartsEvents(bytes: Uint8Array): readonly PartsEvent[] {
  const events: PartsEvent[] = [];
  for (let from = 0; from < bytes.byteLength;) {
    const end = bytes.indexOf(LINE_END, from);
    const length = (end === -1 ? bytes.byteLength : end) - from;
    const line = Buffer.from(bytes.buffer, bytes.byteOffset + from, length).toString();
    const event = JSON.parse(line) as PartsEvent;
    const isData = event.type === 'part' && event.part.kind === 'data';
    events.push(isData ? (parseExact(line) as PartsEvent) : event);
    if (end === -1) break;
    from = end + 1;
  }
  return events;
}
