import type { JsonObject } from '#wire';
import type { Citation, FilePart } from '#bridge';
import type { ChatEnd, ChatFault, ChatSaid } from '../chat/reply/chat-content.ts';

/**
 * Writes one chat reply in another wire. The output is collected until `take`. Texts are given as the inside of a
 * JSON string, so that a text which is only passed on is never parsed.
 */
export interface WireEncoder {
  /** The first events of a stream. */
  begin(): void;
  /** The texts of consecutive deltas. No text is empty. */
  text(run: readonly string[]): void;
  thinking(json: string): void;
  /** Members of the message that its provider wants back. Absent for a wire that has no conversation. */
  members?(members: JsonObject): void;
  /** Pages that the text so far cites. Absent for a wire that has no place for them. */
  citations?(cited: readonly Citation[]): void;
  /** A call of a tool begins. `index` counts from 0. */
  call(index: number, id: string, name: string): void;
  arguments(index: number, json: string): void;
  /** A file of the model. Absent for a wire that has only text, which gets it as text. */
  file?(file: FilePart): void;
  /** Keeps a silent stream alive. */
  ping(): void;
  /** The last events of a stream. */
  end(end: ChatEnd): void;
  /** The last event of a failed stream whose provider speaks the wire. */
  failNative(fault: ChatFault): void;
  take(): string;
  /** A reply that is not streamed. */
  whole(said: ChatSaid, end: ChatEnd): { readonly status: number; readonly body: JsonObject };
}

/** Whether something was charged, or will be. Such a reply is shown even if it failed. */
export const isCharged = ({ usage }: ChatEnd): boolean => usage !== null && usage['cost'] !== 0;

/** Whether a reply consists only of its error. */
export const hasFailed = (end: ChatEnd): boolean =>
  !isCharged(end) && (end.fault !== null || end.finish === 'error' || end.usage === null);

/** The error of a failed reply. */
export const faultOf = ({ fault }: ChatEnd): ChatFault =>
  fault ?? { message: 'The model ended with an error', type: 'provider_unavailable', code: 500 };

/** Whether a reply ended before its model was done. */
const endedEarly = ({ finish, fault }: ChatEnd): boolean =>
  fault !== null || finish === 'length' || finish === 'content_filter';

/**
 * Whether the arguments of a call are not all that the model meant to write. A client must not run such a call.
 * `isLast`: no call follows it.
 */
export function isCutCall(given: string, isLast: boolean, end: ChatEnd): boolean {
  const progress = progressOf(given);
  if (progress.isOpen || !endedEarly(end)) return progress.isOpen;
  return given.trim() === '' ? isLast : !progress.isWhole;
}

/** How far a JSON object or array has come, which arrives in pieces. Each piece is read once. */
export interface JsonProgress {
  push(text: string): void;
  /** All brackets are closed. The text is not parsed, so it may still be invalid. False for other values. */
  readonly isWhole: boolean;
  /** Brackets or a text are not closed. */
  readonly isOpen: boolean;
}

export function createJsonProgress(): JsonProgress {
  return new JsonScanner();
}

class JsonScanner implements JsonProgress {
  #depth = 0;
  #state: 'before' | 'inside' | 'text' | 'escape' | 'after' | 'other' = 'before';

  get isWhole(): boolean {
    return this.#state === 'after';
  }

  get isOpen(): boolean {
    return this.#state === 'inside' || this.#state === 'text' || this.#state === 'escape';
  }

  push(text: string): void {
    for (let i = 0; i < text.length && this.#state !== 'other'; i++) this.#read(text[i]!);
  }

  #read(char: string): void {
    if (this.#state === 'escape') this.#state = 'text';
    else if (this.#state === 'text') this.#state = char === '"' ? 'inside' : char === '\\' ? 'escape' : 'text';
    else if (char === '{' || char === '[') {
      this.#depth++;
      this.#state = this.#state === 'after' ? 'other' : 'inside';
    } else if (SPACES.has(char)) return;
    else if (this.#state !== 'inside') this.#state = 'other';
    else if (char === '"') this.#state = 'text';
    else if ((char === '}' || char === ']') && --this.#depth === 0) this.#state = 'after';
  }
}

function progressOf(text: string): JsonProgress {
  const progress = createJsonProgress();
  progress.push(text);
  return progress;
}

/** Whether a text is an object or an array of which all brackets are closed. */
export const isWholeJson = (text: string): boolean => progressOf(text).isWhole;

/** Whether a text is the beginning of an object or an array. */
export const isOpenJson = (text: string): boolean => progressOf(text).isOpen;

const SPACES: ReadonlySet<string> = new Set([' ', '\t', '\n', '\r']);
