import type { CommandTarget } from '#config';
import { errorText } from '#json-rpc/message';
import {
  after,
  BOUNDS,
  guardForeign,
  isPromise,
  orElse,
  OWN_TURN_BYTES,
  ownTurn,
  readableElements,
  readableMembers,
  setMember,
  splice,
  TooMuchStructure,
} from '#wire';
import type { Log } from '../log.ts';
import { MESSAGE_BYTES_MAX, startChild, type Child } from './child-process.ts';
import {
  BATCH_MESSAGES_MAX,
  elementsOfBatch,
  ERROR,
  errorCodeOf,
  type RpcMessage,
  parseMessage,
  type Response,
} from './json-rpc.ts';

export interface ProcessOptions {
  readonly service: string;
  readonly target: CommandTarget;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

interface MessageTaker {
  take(message: RpcMessage): void;
  /** The id of the only open request, as JSON text. null unless exactly one is open. */
  onlyOpen(): string | null;
}

/** Number of characters that are logged of a line that isn't a message. */
const GARBAGE_CHARS_SHOWN = 200;

const TOO_LONG = `The tool's answer is longer than ${MESSAGE_BYTES_MAX} bytes, the most that a message may have. Ask for a smaller answer`;
const TOO_MANY = `The tool's answer is in a batch of more than ${BATCH_MESSAGES_MAX} messages, the most that are read. Write smaller batches`;
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

  function read(text: string): Promise<void> | void {
    const excess = excessOf(text);
    if (isPromise(excess)) return readLarge(text, excess);
    if (excess === null) accept(text, parseMessage(text));
    else refuse(text, excess);
  }

  /** Each step takes up to 20 ms for the worst text within the bound, so each has its own turn of the event loop. */
  async function readLarge(text: string, checked: Promise<string | null>): Promise<void> {
    const excess = await checked;
    await ownTurn();
    if (excess !== null) return refuse(text, excess);
    const message = parseMessage(text);
    await ownTurn();
    accept(text, message);
  }

  function accept(text: string, message: ReturnType<typeof parseMessage>): void {
    if (message) take(withRequest(message));
    else refuse(text, message === undefined ? NOT_JSON : TWICE);
  }

  function refuse(text: string, why: string): void {
    const facts = { service, text: text.slice(0, GARBAGE_CHARS_SHOWN), why };
    const lost = readLostAnswer(text);
    if (lost === null) return log.warn(facts, 'the tool wrote a line that is not JSON-RPC; the line is ignored');
    log.warn(facts, 'the tool wrote an answer that cannot be read; its client gets an error');
    replace(lost.idText, why);
  }

  function readLine(line: string): Promise<void> | void {
    const texts = elementsOfBatch(line);
    if (texts === null) return readMany(line);
    return texts.length === 1 ? read(texts[0]!) : readAll(texts);
  }

  /** Reads messages in order, about OWN_TURN_BYTES of them in one turn of the event loop. */
  async function readAll(texts: readonly string[]): Promise<void> {
    let chars = 0;
    for (const text of texts) {
      chars += text.length;
      if (chars > OWN_TURN_BYTES) {
        await ownTurn();
        chars = text.length;
      }
      const under = read(text);
      if (under) await under;
    }
  }

  async function readMany(line: string): Promise<void> {
    if (line.length > OWN_TURN_BYTES) await ownTurn();
    await readBeginning(line, TOO_MANY);
    endCut(line, TOO_MANY);
  }

  /** Reads the messages at the beginning of a line, of which the rest is not read. */
  async function readBeginning(beginning: string, why: string): Promise<void> {
    const { complete, cut } = beginningOfBatch(beginning);
    await readAll(complete);
    if (cut.length > OWN_TURN_BYTES) await ownTurn();
    const lost = readLostAnswer(cut);
    if (cut !== beginning) awaits = 'another';
    if (lost === null) return log.warn({ service, why }, 'the tool wrote a line that is too long; the line is ignored');
    log.warn({ service, why }, 'the tool wrote an answer that is too long; its client gets an error');
    if (lost.idText === null) awaits = 'any';
    else replace(lost.idText, why);
  }

  /** Looks for the id at the end of what was not read. */
  function endCut(ending: string, why: string): void {
    const idText = awaits === 'nothing' ? null : idAtEnd(ending.slice(-ENDING_CHARS));
    if (idText !== null || awaits === 'any') replace(idText, why);
    awaits = 'nothing';
  }

  /** The message; with the id of the only open request, if it says that the tool could not parse that request. */
  function withRequest(message: RpcMessage): RpcMessage {
    const idText = saysUnparsed(message) ? onlyOpen() : null;
    return idText === null ? message : (withId(message as Response, idText) ?? message);
  }

  return startChild({
    target,
    env,
    line: readLine,
    tooLong: (beginning) => readBeginning(beginning, TOO_LONG),
    tooLongEnd: (ending) => endCut(ending, TOO_LONG),
    complaint: (text) => log.info({ service, text }, 'the tool says'),
  });
}

/** The excess of a message, in words for its caller. null if it has no more than the gateway reads. */
const excessOf = (text: string): Promise<string | null> | string | null =>
  orElse<string | null>(
    () => after<void, null>(guardForeign(text, BOUNDS.message), () => null),
    (error) => {
      if (!(error instanceof TooMuchStructure)) throw error;
      return `The tool's answer ${error.what}: that is more than a message may have. Ask for a smaller answer`;
    },
  );

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
  const members = readableMembers(beginning, MEMBERS_MAX);
  if (members.has('method') || !(members.has('result') || members.has('error'))) return null;
  const id = members.get('id') ?? '';
  return { idText: id === '' || id === 'null' ? null : id };
}

/** Members of a message in which its id is looked for. It has four that mean anything. */
const MEMBERS_MAX = 1_000;

/** The end of a text in which the id is looked for. */
const ENDING_CHARS = 1_024;

/** A response of the TypeScript SDK has its result first and its id last. It may be the last one of a batch. */
const ID_AT_END =
  /[,{]\s*"id"\s*:\s*(-?\d[\d.eE+-]*|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\]?\s*$/;

/** The id at the end of a response, as JSON text; null if the line does not end with an id. */
const idAtEnd = (ending: string): string | null => ID_AT_END.exec(ending)?.[1] ?? null;

/**
 * The messages in the beginning of a line of which the rest is not read, if the line is a batch: those that are
 * complete, and the beginning of what follows. For any other line only its beginning.
 */
function beginningOfBatch(beginning: string): { readonly complete: readonly string[]; readonly cut: string } {
  const elements = /^\s*\[\s*\{/.test(beginning) ? readableElements(beginning, BATCH_MESSAGES_MAX) : [];
  const first = readableMembers(elements[0] ?? '', MEMBERS_MAX);
  // A tool may also print an array of its own data, whose ids are not those of requests.
  const isBatch = first.has('jsonrpc') || (elements.length === 1 && (first.has('result') || first.has('error')));
  if (!isBatch) return { complete: [], cut: beginning };
  return { complete: elements.slice(0, -1), cut: elements.at(-1) ?? beginning };
}

/**
 * Whether a message says that the server could not parse a request. Such an error has no id. Other errors without an id
 * may be about a notification: some servers refuse `notifications/initialized`.
 */
const saysUnparsed = (message: RpcMessage): message is Response =>
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
