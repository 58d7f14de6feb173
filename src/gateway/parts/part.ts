import { type ErrorCode, type LargeStrings, parseExact } from '#wire';

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

/** Either `url` or `bytes` (base64) is set. */
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

export interface ContentTurn {
  readonly role: 'system' | 'user' | 'assistant';
  readonly parts: readonly Part[];
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
