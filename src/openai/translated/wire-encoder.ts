import type { JsonObject } from '#wire';
import type { Citation, FilePart } from '#bridge';
import { BOUNDS } from '#wire/replies';
import { objectIn } from '../bridge/to-ask.ts';
import { type ChatEnd, type ChatFault, type ChatSaid, MODEL_FAILED } from '../chat/reply/chat-content.ts';
import { endsEarly } from '../chat/reply/finish-reason.ts';

/**
 * Writes one chat reply in another wire. The output is collected until `take`. Texts are given as the inside of a
 * JSON string, so that a text which is only passed on is never parsed.
 */
export interface WireEncoder {
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
  ping(): void;
  /** The last events of a stream. If the end has a fault, what came is charged, and the fault is why it was cut. */
  end(end: ChatEnd): void;
  /** The last event of a stream that failed. `end`: null if its provider speaks the wire, so that its events passed. */
  fail(fault: ChatFault, end: ChatEnd | null): void;
  take(): string;
  /** A reply that is not streamed. For `end` see the method of this name. */
  whole(chatContent: ChatSaid, end: ChatEnd): JsonObject;
  wholeFailure(fault: ChatFault): JsonObject;
}

/** The error of a reply that consists only of it; null for one that is shown, as it is charged or will be. */
export function failureOf({ usage, finish, fault }: ChatEnd): ChatFault | null {
  const isCharged = usage !== null && usage['cost'] !== 0;
  if (isCharged || (fault === null && finish !== 'error' && usage !== null)) return null;
  return fault ?? MODEL_FAILED;
}

/** Whether a reply ended before its model was done. */
const endedEarly = ({ finish, fault }: ChatEnd): boolean => fault !== null || endsEarly(finish);

/**
 * Whether the arguments of a call are not all that the model meant to write. A client must not run such a call.
 * `isLast`: no call follows it.
 */
export function isCutCall(argumentText: string, isLast: boolean, end: ChatEnd): boolean {
  const progress = progressOf(argumentText);
  if (progress.isOpen || !endedEarly(end)) return progress.isOpen;
  return argumentText.trim() === '' ? isLast : !progress.isWhole;
}

/** How far a JSON object or array has come, which arrives in pieces. Each piece is read once. */
export class JsonProgress {
  #depth = 0;
  #state: 'before' | 'inside' | 'text' | 'escape' | 'after' | 'other' = 'before';

  /** All brackets are closed. The text is not parsed, so it may still be invalid. False for other values. */
  get isWhole(): boolean {
    return this.#state === 'after';
  }

  /** Something has been read besides white space. */
  get hasBegun(): boolean {
    return this.#state !== 'before';
  }

  /** Brackets or a text are not closed. */
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
  const progress = new JsonProgress();
  progress.push(text);
  return progress;
}

/** The arguments of a call as an object. Anything else that a model wrote is passed on as text inside an object. */
export const argumentsOf = (argumentText: string): JsonObject =>
  objectIn(argumentText, BOUNDS.reply) ?? { arguments: argumentText };

/** Whether a text is an object or an array of which all brackets are closed. */
export const isWholeJson = (text: string): boolean => progressOf(text).isWhole;

/** Whether a text is the beginning of an object or an array. */
export const isOpenJson = (text: string): boolean => progressOf(text).isOpen;

const SPACES: ReadonlySet<string> = new Set([' ', '\t', '\n', '\r']);
