import type { ErrorCode, LargeStrings } from '#wire';

/** A piece of what is said to a primitive or by it, as all protocols have it in their own shapes. */
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

/** Either `url` or `bytes` (base64) is there. */
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
  /** Base64 as RFC 4648 has it, which was checked. */
  readonly base64: Uint8Array;
}

export interface PartsTurn {
  readonly role: 'system' | 'user' | 'assistant';
  readonly parts: readonly Part[];
}

/**
 * The next piece of an answer: parts as they come (texts that follow each other are one text), and progress.
 */
export type PartsEvent =
  | { readonly type: 'part'; readonly part: Part }
  /** It works, and says so; no part of the answer. */
  | { readonly type: 'progress'; readonly text: string | null };

/** How it ended. The tail of a call that was asked in parts. */
export interface PartsEnd {
  /**
   * `input`: it asks for more, in the parts that were given. `cut`: it was ended before its own end, `error` says
   * why; what came is charged. `failed`: by its own words, in `error`; nothing is charged. `later`: it goes on as the
   * task `taskId`, at whose end it is charged.
   */
  readonly finish: 'stop' | 'length' | 'input' | 'cut' | 'failed' | 'later';
  readonly error: string | null;
  /**
   * The error code of a failure; default `provider_unavailable`. A tool that says itself why it failed is
   * `unprocessable`: the same again would fail again.
   */
  readonly errorCode?: ErrorCode;
  /** Files that follow the parts, which a door writes past its texts: see `largePart`. Default none. */
  readonly files?: readonly LargeFile[];
  /** An agent's task and context, to go on with. */
  readonly taskId: string | null;
  readonly contextId: string | null;
  /** Tokens, as far as they were reported. */
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** The end of a call without a task or counted tokens. */
export const NO_TASK: Omit<PartsEnd, 'finish' | 'error'> = {
  taskId: null,
  contextId: null,
  promptTokens: 0,
  completionTokens: 0,
};

/** A large file as a part of an answer, with a mark of `large` in the place of its base64. */
export const largePart = ({ mediaType, name, base64 }: LargeFile, large: LargeStrings): FilePart => ({
  kind: 'file',
  mediaType,
  name,
  url: null,
  bytes: large.mark(base64),
});

/** The last turn as a prompt: its texts, with data as JSON, and its files. */
export function lastOf(turns: readonly PartsTurn[]): { readonly prompt: string; readonly files: readonly FilePart[] } {
  const parts: readonly Part[] = turns.at(-1)?.parts ?? [];
  const texts = parts.flatMap((part) =>
    part.kind === 'file' ? [] : [part.kind === 'text' ? part.text : JSON.stringify(part.data)],
  );
  return { prompt: texts.join('\n').trim(), files: parts.filter((part) => part.kind === 'file') };
}

const LINE_END = 0x0a;

/** An event as a frame carries it from a speaker to a door: a line of JSON. */
export function encodePartsEvent(event: PartsEvent): Uint8Array {
  return Buffer.from(`${JSON.stringify(event)}\n`);
}

/** The events of one data frame, which holds whole lines. */
export function decodePartsEvents(bytes: Uint8Array): readonly PartsEvent[] {
  const events: PartsEvent[] = [];
  for (let from = 0; from < bytes.byteLength;) {
    const end = bytes.indexOf(LINE_END, from);
    events.push(
      JSON.parse(
        Buffer.from(bytes.buffer, bytes.byteOffset + from, (end === -1 ? bytes.byteLength : end) - from).toString(),
      ) as PartsEvent,
    );
    if (end === -1) break;
    from = end + 1;
  }
  return events;
}
