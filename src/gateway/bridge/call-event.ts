import type { ErrorCode } from '#errors';
import type { LargeStrings } from '#wire';

/** A part of a message to a primitive or from it. Every protocol has its own form of it. */
export type Part = TextPart | DataPart | FilePart;

export interface TextPart {
  readonly kind: 'text';
  readonly text: string;
}

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

/**
 * One step of a reply where two wires meet. The decoder of one wire makes events, and the encoder of the other wire
 * writes them, so nothing is serialised in between. Where the AI SDK's stream parts have the same step, it has the same
 * name. Between a client and a provider of the same wire there are no events: its bytes pass.
 */
export type CallEvent =
  | TextDelta
  | ReasoningDelta
  | ReasoningMembers
  | { readonly type: 'citations'; readonly cited: readonly Citation[] }
  | ToolInputStart
  | ToolInputDelta
  | { readonly type: 'file'; readonly file: FilePart }
  | { readonly type: 'data'; readonly data: unknown }
  /** A sign that the work goes on; not part of the answer. */
  | { readonly type: 'progress'; readonly text: string | null }
  | RawChunk;

/** The texts of one or more deltas that follow each other. See textDelta and textOf. */
interface TextDelta {
  readonly type: 'text-delta';
  /**
   * The inside of a JSON string for each delta. Most wires carry text in this form, so a text that only passes is
   * neither parsed nor escaped again. A model gives no empty ones.
   */
  readonly json: readonly string[];
}

/** The reasoning of a model, in the form of a TextDelta. */
interface ReasoningDelta {
  readonly type: 'reasoning-delta';
  readonly json: readonly string[];
  /** The member of the model's message that has it, and under which its provider wants it back. */
  readonly member?: string;
}

/**
 * Further members of a message that the model's provider wants back with the next request: its reasoning in a form of
 * the provider's own, with signatures. No client sees them.
 */
interface ReasoningMembers {
  readonly type: 'reasoning-members';
  readonly members: Readonly<Record<string, unknown>>;
}

/** A page that a model cites. `start` and `end`: the characters of the text that do. */
export interface Citation {
  readonly url: string;
  readonly title: string;
  readonly start: number;
  readonly end: number;
}

/** A model begins a call of a tool. */
interface ToolInputStart {
  readonly type: 'tool-input-start';
  /** Counts from 0 within the reply. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
}

/** The next part of the arguments of a tool call, in the form of a TextDelta. */
interface ToolInputDelta {
  readonly type: 'tool-input-delta';
  readonly index: number;
  readonly json: readonly string[];
}

/**
 * A whole chunk of a chat stream, as an object. It has members that no event has, and a chat client gets it as it is.
 */
interface RawChunk {
  readonly type: 'raw';
  readonly chunk: Record<string, unknown>;
}

/** The events that came together. They are written together. */
export interface EventBatch {
  readonly events: readonly CallEvent[];
  /** About as many bytes as the provider sent for them; at least 1. */
  readonly byteLength: number;
  /** The large strings that the events have only marks of, see largePart. Absent for none. */
  readonly large?: LargeStrings;
}

/** null without events. `byteLength`: the bytes that they were read from; default the size of their texts. */
export function eventBatch(events: readonly CallEvent[], byteLength?: number): EventBatch | null {
  if (events.length === 0) return null;
  return { events, byteLength: Math.max(1, byteLength ?? events.reduce((sum, event) => sum + sizeOf(event), 0)) };
}

function sizeOf(event: CallEvent): number {
  if ('json' in event) return event.json.reduce((sum, { length }) => sum + length, 0);
  return event.type === 'file' ? (event.file.bytes?.length ?? 0) : 0;
}

/** The inside of a JSON string. */
export const jsonInside = (text: string): string => JSON.stringify(text).slice(1, -1);

export const textDelta = (text: string): TextDelta => ({ type: 'text-delta', json: [jsonInside(text)] });

/** The text of an event with texts. */
export function textOf({ json }: { readonly json: readonly string[] }): string {
  const inside = json.length === 1 ? json[0]! : json.join('');
  return inside.includes('\\') ? (JSON.parse(`"${inside}"`) as string) : inside;
}

export function eventOf(part: Part): CallEvent {
  if (part.kind === 'text') return textDelta(part.text);
  return part.kind === 'file' ? { type: 'file', file: part } : { type: 'data', data: part.data };
}

/** The part of the answer that an event adds; null if it adds none, such as the reasoning of a model. */
export function partOf(event: CallEvent): Part | null {
  switch (event.type) {
    case 'text-delta':
      return { kind: 'text', text: textOf(event) };
    case 'file':
      return event.file;
    case 'data':
      return { kind: 'data', data: event.data };
    default:
      return null;
  }
}

/** How a call through a target adapter ended. */
export interface ContentResult {
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
  readonly taskId: string | null;
  readonly contextId: string | null;
  /** Token counts; 0 if not reported. */
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** The end of a call, also of one that was ended before anything came. */
export const contentResultOf = (end: { readonly result: ContentResult | null }): ContentResult =>
  end.result ?? { ...NO_TASK, finish: 'cut', error: null };

/** The end of a call without a task or counted tokens. */
export const NO_TASK: Omit<ContentResult, 'finish' | 'error'> = {
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
