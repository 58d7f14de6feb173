import { isObject } from '#wire';
import { createByteOutput, textForm, writeTexts } from '../stream/chunk-forms.ts';
import { type EventForm, findRun } from '../stream/event-forms.ts';
import { createEchoFields, furtherMembers, NOTHING, type ClientId, ID_MAX } from './echo-fields.ts';
import {
  type ChatEnd,
  type ChatFault,
  type ChatSaid,
  jsonInside,
  type WireEncoder,
} from '../translated/wire-encoder.ts';

type Json = Record<string, unknown>;

/** Reads the stream that the chat wire writes for its clients. It gets whole events. */
export interface ChatPieces {
  /** Passes the content of the events to `encoder`. Returns the end of the reply once it has come, else null. */
  read(bytes: Uint8Array, encoder: WireEncoder): ChatEnd | null;
}

const CONTENT = '"content":"';
const DATA = 'data: ';
const BLANK_LINE = '\n\n';
const COMMENT = 0x3a;
const LETTER_D = 0x64;

/** `idOf`: default: the provider's ids. */
export function createChatPieces(idOf: ClientId = OWN_ID): ChatPieces {
  /** The form of chunks in which only the text is new. */
  let form: EventForm | null = null;
  const texts = createByteOutput();
  const ids = createIds(idOf);

  const runAt = (bytes: Buffer, at: number, events: number) =>
    findRun(form!, bytes, at + DATA.length, bytes.length, true, events, Infinity);

  /**
   * Passes on the texts of the events from `at` that have the known form. Returns the place after them, or `at`
   * without such an event.
   */
  function sayKnown(bytes: Buffer, at: number, encoder: WireEncoder): number {
    if (form === null || bytes[at] !== LETTER_D) return at;
    const run = runAt(bytes, at, Infinity) ?? runAt(bytes, at, 1);
    if (run === null) return at;
    if (run.length > 0) {
      writeTexts(TEXTS, run, bytes, texts);
      const known = texts.take()!.toString().split(SEPARATOR);
      encoder.text(known.includes('') ? known.filter((one) => one !== '') : known);
    }
    return run.end;
  }

  return {
    read(given, encoder) {
      let end: ChatEnd | null = null;
      const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
      for (let at = 0; at < bytes.length;) {
        const after = sayKnown(bytes, at, encoder);
        if (after > at) {
          at = after;
          continue;
        }
        const stop = bytes.indexOf(BLANK_LINE, at);
        const event = bytes.toString('utf8', at, stop === -1 ? bytes.length : stop);
        if (bytes[at] === COMMENT) encoder.ping();
        else if (event.startsWith('data: {')) {
          const chunk = JSON.parse(event.slice(DATA.length)) as Json;
          const delta = deltaOf(chunk);
          form = (delta && formOf(event, delta)) ?? form;
          if (delta) sayDelta(delta, encoder, ids);
          // Some servers write null for an absent member.
          if ((chunk['usage'] ?? null) !== null || (chunk['error'] ?? null) !== null) end = endOf(chunk);
        }
        at = stop === -1 ? bytes.length : stop + BLANK_LINE.length;
      }
      return end;
    },
  };
}

/** A character that cannot be inside a JSON string. */
const SEPARATOR = '\n';
const NONE = Buffer.alloc(0);
const TEXTS = { head: NONE, parts: [NONE], between: Buffer.from(SEPARATOR) };

const choiceOf = ({ choices }: Json): Json | undefined => (choices as readonly Json[] | undefined)?.[0];
const deltaOf = (chunk: Json): Json | undefined => choiceOf(chunk)?.['delta'] as Json | undefined;

/** The form of an event whose delta has only text; null for another event. */
function formOf(event: string, delta: Json): EventForm | null {
  const { content } = delta;
  if (typeof content !== 'string' || content === '' || textOf(delta) !== content) return null;
  if (thinkingOf(delta) !== '' || Array.isArray(delta['tool_calls']) || /"(?:usage|error)":/.test(event)) return null;
  const inside = jsonInside(content);
  const at = event.indexOf(`${CONTENT}${inside}"`);
  if (at === -1) return null;
  const start = at + CONTENT.length;
  return textForm(event.slice(DATA.length, start), event.slice(start + inside.length));
}

const OWN_ID: ClientId = (id) => id;

/** Makes the ids of the calls of one reply. The first call gets the members of the message. */
function createIds(idOf: ClientId) {
  const echoFields = createEchoFields(ID_MAX);
  let called = false;
  return {
    /** A delta, or the whole message, before its calls. */
    hear: (message: Json) => echoFields.add(message),
    of(id: string, call: Json): string {
      const members = called ? NOTHING : echoFields.members;
      called = true;
      return idOf(id, furtherMembers(call), members);
    },
  };
}

function sayDelta(delta: Json, encoder: WireEncoder, ids: ReturnType<typeof createIds>): void {
  const { tool_calls: calls } = delta;
  ids.hear(delta);
  const thinking = thinkingOf(delta);
  if (thinking !== '') encoder.thinking(jsonInside(thinking));
  const text = textOf(delta);
  if (text !== '') encoder.text([jsonInside(text)]);
  if (!Array.isArray(calls)) return;
  for (const call of calls as readonly Json[]) {
    const index = call['index'] as number;
    if (index >= CALLS_MAX) continue;
    const { name, arguments: given } = (call['function'] ?? {}) as Json;
    if (typeof call['id'] === 'string')
      encoder.call(index, ids.of(call['id'], call), typeof name === 'string' ? name : '');
    if (typeof given === 'string' && given !== '') encoder.arguments(index, jsonInside(given));
  }
}

/** The thinking in a message or a delta. Some servers send it under both names. */
const thinkingOf = ({ reasoning_content: one, reasoning: other }: Json): string =>
  typeof one === 'string' && one !== '' ? one : typeof other === 'string' ? other : '';

/** Everything that a client can show as text: content, a refusal, and images as markdown. */
function textOf({ content, refusal, images }: Json): string {
  const words = typeof content === 'string' ? content : Array.isArray(content) ? content.map(wordsOf).join('') : '';
  const pictures = Array.isArray(images) ? images.map(wordsOf).join('') : '';
  return words + (typeof refusal === 'string' ? refusal : '') + pictures;
}

function wordsOf(part: unknown): string {
  const { text, image_url: image } = (part ?? {}) as {
    readonly text?: unknown;
    readonly image_url?: { readonly url?: unknown } | null;
  };
  if (typeof text === 'string') return text;
  return typeof image?.url === 'string' ? `\n![image](${image.url})\n` : '';
}

function endOf(chunk: Json): ChatEnd {
  const choice = choiceOf(chunk);
  const { finish_reason: finish, stop_reason: sequence } = choice ?? {};
  return {
    finish: typeof finish === 'string' ? finish : null,
    stopSequence: typeof sequence === 'string' ? sequence : null,
    usage: (chunk['usage'] as Json | undefined) ?? null,
    fault: (chunk['error'] as ChatFault | undefined) ?? noteOf(chunk),
    tollgate: chunk['tollgate'],
  };
}

/** The reason why a whole reply was cut is in `tollgate.note`. */
const noteOf = ({ tollgate }: Json): ChatFault | null =>
  (tollgate as { readonly note?: ChatFault } | undefined)?.note ?? null;

/** Splits a chat completion into its content and its end. `idOf`: default: the provider's ids. */
export function readCompletion(
  completion: Json,
  idOf: ClientId = OWN_ID,
): { readonly said: ChatSaid; readonly end: ChatEnd } {
  const message = (choiceOf(completion)?.['message'] ?? {}) as Json;
  const calls = Array.isArray(message['tool_calls']) ? (message['tool_calls'] as readonly unknown[]) : [];
  const ids = createIds(idOf);
  ids.hear(message);
  return {
    said: {
      thinking: thinkingOf(message),
      text: textOf(message),
      calls: calls.filter(isObject).map((call, index) => {
        const { name, arguments: given } = (call['function'] ?? {}) as Json;
        const { id } = call;
        // Unique in the whole conversation.
        const own = typeof id === 'string' && id !== '' ? id : `call_${String(completion['id'])}_${index}`;
        return {
          id: ids.of(own, call),
          name: typeof name === 'string' ? name : '',
          arguments: typeof given === 'string' ? given : given === undefined ? '' : JSON.stringify(given),
        };
      }),
    },
    end: endOf(completion),
  };
}

/** Parses the chunks in the output of a stream reader, which has whole events of one line each. */
export function chunksOf(bytes: Uint8Array): Record<string, unknown>[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.slice('data: '.length)) as Record<string, unknown>);
}

/** The most tool calls of one reply. Further calls are ignored, because a stream has room for millions. */
export const CALLS_MAX = 1_024;
