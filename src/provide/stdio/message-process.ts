import type { CommandTarget } from '#config';
import { errorText } from '#json-rpc/message';
import { readableElements, readableMembers, setMember, splice } from '#wire';
import type { Log } from '../log.ts';
import { MESSAGE_BYTES_MAX, startChild, type Child } from './child-process.ts';
import { elementsOfBatch, parseMessage, type Message, type Response, ERROR, errorCodeOf } from './json-rpc.ts';

export interface ProcessOptions {
  readonly service: string;
  readonly target: CommandTarget;
  /** The proxy's own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

/** Handles the messages of a process. */
interface MessageTaker {
  take(message: Message): void;
  /** The id of the only open request, as JSON text. null unless exactly one is open. */
  onlyOpen(): string | null;
}

/** Number of characters that are logged of a line that isn't a message. */
const GARBAGE_CHARS_SHOWN = 200;

const TOO_LONG = `The tool's answer is longer than ${MESSAGE_BYTES_MAX} bytes, the most that a message may have. Ask for a smaller answer`;
const NOT_JSON = "The tool's answer is not valid JSON";
const TWICE = "The tool's answer is ambiguous: it has a duplicate key";

/**
 * Starts a tool's process that writes one JSON-RPC message, or one batch of messages, per line. If a response cannot be
 * read, its request is answered with an error at once. Other lines are logged and skipped.
 */
export function startMessageProcess(
  { service, target, env, log }: ProcessOptions,
  { take, onlyOpen }: MessageTaker,
): Child {
  /**
   * Information that the end of a line that is too long may still give. `any`: the id of the response whose beginning
   * had none. `another`: the id of the last response of a batch.
   */
  let awaits: 'nothing' | 'any' | 'another' = 'nothing';

  function replace(idText: string | null, why: string): void {
    const id = idText ?? onlyOpen();
    const error = id === null ? null : inPlaceOf(id, why);
    if (error) take(error);
    else log.warn({ service }, 'the request of the answer is not known, so its client waits');
  }

  function read(text: string): void {
    const message = parseMessage(text);
    if (message) return take(withRequest(message));
    const facts = { service, text: text.slice(0, GARBAGE_CHARS_SHOWN) };
    const lost = readLostAnswer(text);
    if (lost === null) return log.warn(facts, 'the tool wrote a line that is not JSON-RPC; the line is ignored');
    log.warn(facts, 'the tool wrote an answer that cannot be read; its client gets an error');
    replace(lost.idText, message === undefined ? NOT_JSON : TWICE);
  }

  /** The message; with the id of the only open request, if it says that the tool could not parse that request. */
  function withRequest(message: Message): Message {
    const idText = saysUnparsed(message) ? onlyOpen() : null;
    return idText === null ? message : (withId(message as Response, idText) ?? message);
  }

  function readTooLong(beginning: string): void {
    const { complete, cut } = beginningOfBatch(beginning);
    complete.forEach(read);
    const lost = readLostAnswer(cut);
    if (cut !== beginning) awaits = 'another';
    if (lost === null) return log.warn({ service }, 'the tool wrote a line that is too long; the line is ignored');
    log.warn({ service }, 'the tool wrote an answer that is too long; its client gets an error');
    if (lost.idText === null) awaits = 'any';
    else replace(lost.idText, TOO_LONG);
  }

  return startChild({
    target,
    env,
    line: (text) => elementsOfBatch(text).forEach(read),
    tooLong: readTooLong,
    tooLongEnd(ending) {
      const idText = awaits === 'nothing' ? null : idAtEnd(ending);
      if (idText !== null || awaits === 'any') replace(idText, TOO_LONG);
      awaits = 'nothing';
    },
    complaint: (text) => log.info({ service, text }, 'the tool says'),
  });
}

/**
 * A line that cannot be read, but is the response to a request. `idText`: id of the request as JSON text; null if it
 * cannot be found.
 */
interface LostAnswer {
  readonly idText: string | null;
}

/**
 * `beginning`: the line, or the part of it that was kept. Returns null for a line that is no response, such as a log
 * message.
 */
function readLostAnswer(beginning: string): LostAnswer | null {
  const members = readableMembers(beginning);
  if (members.has('method') || !(members.has('result') || members.has('error'))) return null;
  const id = members.get('id') ?? '';
  return { idText: id === '' || id === 'null' ? null : id };
}

/** A response of the TypeScript SDK has its result first and its id last. It may be the last one of a batch. */
const ID_AT_END =
  /[,{]\s*"id"\s*:\s*(-?\d[\d.eE+-]*|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\]?\s*$/;

/** The id at the end of a response, as JSON text; null if the line does not end with an id. */
const idAtEnd = (ending: string): string | null => ID_AT_END.exec(ending)?.[1] ?? null;

/**
 * The messages in the beginning of a line that is too long, if the line is a batch: those that are complete, and the
 * beginning of the one that is not. For any other line only its beginning.
 */
function beginningOfBatch(beginning: string): { readonly complete: readonly string[]; readonly cut: string } {
  const elements = /^\s*\[\s*\{/.test(beginning) ? readableElements(beginning) : [];
  const first = readableMembers(elements[0] ?? '');
  // A tool may also print an array of its own data, whose ids are not those of requests.
  const isBatch = first.has('jsonrpc') || (elements.length === 1 && (first.has('result') || first.has('error')));
  if (!isBatch) return { complete: [], cut: beginning };
  return { complete: elements.slice(0, -1), cut: elements.at(-1) ?? beginning };
}

/**
 * Whether a message says that the server could not parse a request. Such an error has no id. Other errors without an id
 * may be about a notification: some servers refuse `notifications/initialized`.
 */
const saysUnparsed = (message: Message): message is Response =>
  message.kind === 'response' && (message.value['id'] ?? null) === null && errorCodeOf(message) === ERROR.parse;

/** The response with another id, as JSON text. */
function withId({ text }: Response, idText: string): Response | null {
  const message = parseMessage(splice(text, [setMember(text, 0, 'id', idText)]));
  return message?.kind === 'response' ? message : null;
}

/** The error in place of a lost answer. null if `idText` is not JSON. */
function inPlaceOf(idText: string, why: string): Response | null {
  const message = parseMessage(errorText(idText, { code: ERROR.process, message: why }));
  return message?.kind === 'response' ? message : null;
}
