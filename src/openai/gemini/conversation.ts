import { getOrInsert, isObject, type JsonObject } from '#wire';
import type { ChatMessage, ContentPart } from '../chat/chat-schema.ts';
import { EchoFields, echoMembersOf, plainId } from '../chat/reply/echo-fields.ts';
import { addMissing, addResult, joinThinking, addUser, GAP, invalid } from '../translated/chat-turns.ts';
import type { WireRequest } from '../translated/wire-request.ts';
import type { Content, GeminiBody } from './schema.ts';
import { fileOf, wordsOfPart } from './parts.ts';
import { callInSignature, signedThought } from './signatures.ts';

interface Called {
  /** The id in the chat request. */
  readonly id: string;
  readonly name: string;
  isAnswered: boolean;
}

/**
 * The calls of a conversation that may still get their results. Each look-up takes the same time, however many calls
 * there are.
 */
class OpenCalls {
  count = 0;
  readonly #byId = new Map<string, Queue>();
  /** Calls of each name, and those of them that the client knows by no id. */
  readonly #byName = new Map<string, Queue>();
  readonly #nameless = new Map<string, Queue>();

  /** `known`: the id that the client knows; null if it left it out. */
  add(known: string | null, id: string, name: string): void {
    this.count++;
    const call: Called = { id, name, isAnswered: false };
    getOrInsert(this.#byName, name, queue).calls.push(call);
    if (known === null) getOrInsert(this.#nameless, name, queue).calls.push(call);
    else getOrInsert(this.#byId, known, queue).calls.push(call);
  }

  /** The call that a result answers, by its id, or by its name in the order of the calls; undefined for none. */
  answer(id: unknown, name: unknown): Called | undefined {
    const isNamed = typeof id === 'string' && id !== '';
    const openCall = isNamed
      ? (firstOpen(this.#byId.get(id)) ?? firstOpen(this.#nameless.get(String(name))))
      : firstOpen(this.#byName.get(String(name)));
    if (openCall !== undefined) openCall.isAnswered = true;
    return openCall;
  }
}

interface Queue {
  readonly calls: Called[];
  /** Index of the first call that may have no result. */
  next: number;
}

const queue = (): Queue => ({ calls: [], next: 0 });

function firstOpen(openQueue: Queue | undefined): Called | undefined {
  if (openQueue === undefined) return undefined;
  while (openQueue.calls[openQueue.next]?.isAnswered) openQueue.next++;
  return openQueue.calls[openQueue.next];
}

/**
 * Turns a conversation into chat messages. Consecutive contents of the model become one message, because clients keep
 * each event of a stream as a content of its own. Throws GatewayError `invalid_request`.
 */
export function toChatMessages({ contents }: Pick<GeminiBody, 'contents'>, request: WireRequest): ChatMessage[] {
  const chat: ChatMessage[] = [];
  const called = new OpenCalls();
  let answer: ModelAnswer | null = null;
  contents.forEach((content, index) => {
    const at = `contents[${index}].parts`;
    if (content.role === 'model') {
      answer ??= new ModelAnswer(called, request);
      for (const [place, part] of partsOf(content)) answer.add(part, `${at}[${place}]`);
      return;
    }
    answer?.writeTo(chat);
    answer = null;
    addUser(chat, userParts(chat, content, at, called));
  });
  (answer as ModelAnswer | null)?.writeTo(chat);
  return chat;
}

const partsOf = ({ parts }: Content): Iterable<[number, JsonObject]> => (parts ?? []).entries();

export const textOf = (content: Content | null | undefined): string =>
  (content?.parts ?? [])
    .map(({ text }) => text)
    .filter((text) => typeof text === 'string' && text !== '')
    .join(GAP);

/** The parts of a user's turn. Its results of functions are added to `chat`. */
function userParts(chat: ChatMessage[], content: Content, at: string, called: OpenCalls): ContentPart[] {
  const parts: ContentPart[] = [];
  const ofResults: ContentPart[] = [];
  for (const [place, part] of partsOf(content)) {
    const here = `${at}[${place}]`;
    const { text, functionResponse: result } = part;
    if (isObject(result)) {
      const call = called.answer(result['id'], result['name']);
      const words = resultOf(result, `${here}.functionResponse`, ofResults);
      if (call !== undefined) addResult(chat, { role: 'tool', tool_call_id: call.id, content: words });
      // A client may have left the call out of a long conversation. Models refuse a result without its call.
      else parts.push({ type: 'text', text: `[result of ${String(result['name'])}: ${words}]` });
    } else if (typeof text === 'string') {
      if (text !== '') parts.push({ type: 'text', text });
    } else {
      const file = fileOf(part, here);
      const words = file === null ? wordsOfPart(part) : null;
      if (file !== null) parts.push(file);
      else if (words !== null) parts.push({ type: 'text', text: words });
      else throw invalid(here, 'a part with text, inlineData, fileData or functionResponse');
    }
  }
  return [...ofResults, ...parts];
}

/** A result as text. Chat models take no files in it, so its files are added to `pictures`, for the next message. */
function resultOf({ name, response, parts }: JsonObject, at: string, pictures: ContentPart[]): string {
  if (response !== undefined && response !== null && !isObject(response))
    throw invalid(`${at}.response`, 'a JSON object');
  if (Array.isArray(parts))
    (parts as readonly unknown[]).forEach((part, index) => {
      const file = isObject(part) ? fileOf(part, `${at}.parts[${index}]`) : null;
      if (file !== null) pictures.push({ type: 'text', text: `A file of the result of ${String(name)}:` }, file);
    });
  return wordsOfResult(response ?? {});
}

/** `output` and `error` of a response are what the API itself shows to its models. */
function wordsOfResult(response: JsonObject): string {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  if (response['output'] !== undefined) return text(response['output']);
  if (response['error'] !== undefined) return `Error: ${text(response['error'])}`;
  return JSON.stringify(response);
}

class ModelAnswer {
  readonly #called: OpenCalls;
  readonly #request: WireRequest;
  readonly #calls: JsonObject[] = [];
  readonly #members: JsonObject[] = [];
  /** The members in the signatures of texts. */
  readonly #echoFields = new EchoFields(Infinity);
  readonly #thoughts = new EchoFields(Infinity);
  #text = '';
  /** The text of thoughts that no signature has followed yet. */
  #shownThinking = '';
  #isThoughtLost = false;

  constructor(called: OpenCalls, request: WireRequest) {
    this.#called = called;
    this.#request = request;
  }

  add(part: JsonObject, at: string): void {
    const { text, thought, thoughtSignature: signature, functionCall: call } = part;
    if (isObject(call))
      return this.#addCall(call, typeof signature === 'string' ? signature : null, `${at}.functionCall`);
    if (thought === true) return this.#addThought(typeof text === 'string' ? text : '', signature);
    if (typeof text === 'string') {
      this.#text += text;
      const signedMembers = typeof signature === 'string' ? signedThought(this.#request.seals, '', signature) : null;
      if (signedMembers !== null) this.#echoFields.add(signedMembers);
    } else {
      const file = fileOf(part, at);
      // Models take no files in their own answers.
      const words = file === null ? wordsOfPart(part) : '[file]';
      if (words !== null) this.#text += words;
      else for (const name of Object.keys(part)) this.#request.leftOut.add(name);
    }
  }

  writeTo(chat: ChatMessage[]): void {
    if (this.#text === '' && this.#calls.length === 0) return;
    const message: ChatMessage = { role: 'assistant', content: this.#text === '' ? null : this.#text };
    joinThinking(message, this.#echoFields.members);
    for (const one of this.#members) addMissing(message, one);
    // Thoughts that are shown are a part of that.
    if (echoMembersOf(message).length === 0) {
      joinThinking(message, this.#thoughts.members);
      if (this.#isThoughtLost || this.#shownThinking !== '') this.#request.leftOut.add('thought');
    }
    if (this.#calls.length > 0) message['tool_calls'] = this.#calls;
    chat.push(message);
  }

  #addThought(text: string, signature: unknown): void {
    this.#shownThinking += text;
    if (typeof signature !== 'string') return;
    const thought = signedThought(this.#request.seals, this.#shownThinking, signature);
    this.#shownThinking = '';
    if (thought !== null) this.#thoughts.add(thought);
    else this.#isThoughtLost = true;
  }

  #addCall({ id: givenId, name, args }: JsonObject, signature: string | null, at: string): void {
    if (typeof name !== 'string' || name === '') throw invalid(`${at}.name`, 'the name of a function');
    if (args !== undefined && args !== null && !isObject(args)) throw invalid(`${at}.args`, 'a JSON object');
    const known = typeof givenId === 'string' && givenId !== '' ? givenId : null;
    const echoedCall = signature === null ? null : callInSignature(this.#request.seals, signature);
    const id = echoedCall?.id ?? (known === null ? `call_${this.#called.count}` : plainId(known));
    this.#called.add(known, id, name);
    if (echoedCall !== null) this.#members.push(echoedCall.message);
    const fn = { name: this.#request.toolNames.short(name), arguments: JSON.stringify(args ?? {}) };
    this.#calls.push({ ...echoedCall?.call, id, type: 'function', function: fn });
  }
}
