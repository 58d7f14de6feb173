import type { JsonObject } from '#wire';
import { type CallEvent, type Citation, type FilePart, jsonInside, type Part } from '#bridge';
import { EchoFields, echoMembersOf, furtherMembers, NOTHING, type ClientId, ID_MAX } from './echo-fields.ts';
import type { ChatEnd, ChatFault, ChatSaid } from './chat-content.ts';
import { finishReasonOf } from './finish-reason.ts';

/* The decoder of the chat wire: chunks and whole completions, in the gateway's form, become events of a reply. */

export interface ToolCallIds {
  /** Takes a delta, or the whole message, before its calls. Its provider may want members of it back with the calls. */
  hear(message: JsonObject): void;
  /** The client's id of a call with the provider's `id`. */
  idOf(id: string, call: JsonObject): string;
}

const OWN_ID: ClientId = (id) => id;

/** `idOf`: default: the provider's ids. */
export function createToolCallIds(idOf: ClientId = OWN_ID): ToolCallIds {
  if (idOf === OWN_ID) return OWN_IDS;
  const echoFields = new EchoFields(ID_MAX);
  let called = false;
  return {
    hear: (message) => echoFields.add(message),
    idOf(id, call) {
      // The first call gets the members of the message.
      const members = called ? NOTHING : echoFields.members;
      called = true;
      return idOf(id, furtherMembers(call), members);
    },
  };
}

const OWN_IDS: ToolCallIds = { hear() {}, idOf: (id) => id };

/** Adds the events of the first choice of a chunk to `events`. The end of the reply is no event. */
export function decodeChunk(chunk: JsonObject, ids: Pick<ToolCallIds, 'hear' | 'idOf'>, events: CallEvent[]): void {
  const delta = choiceOf(chunk)?.['delta'] as JsonObject | undefined;
  if (!delta) return;
  ids.hear(delta);
  addThinking(delta, events);
  for (const part of partsOfMessage(delta))
    events.push(
      part.kind === 'file' ? { type: 'file', file: part } : { type: 'text-delta', json: [jsonInside(part.text)] },
    );
  const cited = citationsOf(delta);
  if (cited.length > 0) events.push({ type: 'citations', cited });
  const { tool_calls: calls } = delta;
  if (!Array.isArray(calls)) return;
  for (const call of calls as readonly JsonObject[]) {
    const index = call['index'] as number;
    if (index >= CALLS_MAX) continue;
    const { name, arguments: argumentValue } = (call['function'] ?? {}) as JsonObject;
    if (typeof call['id'] === 'string') {
      const id = ids.idOf(call['id'], call);
      events.push({ type: 'tool-input-start', index, id, name: typeof name === 'string' ? name : '' });
    }
    if (typeof argumentValue === 'string' && argumentValue !== '')
      events.push({ type: 'tool-input-delta', index, json: [jsonInside(argumentValue)] });
  }
}

function addThinking(delta: JsonObject, events: CallEvent[]): void {
  const names = echoMembersOf(delta);
  if (names.length === 0) return;
  const thinkingText = thinkingMember(delta);
  const others = names.filter((name) => name !== thinkingText).map((name) => [name, delta[name]] as const);
  if (others.length > 0) events.push({ type: 'reasoning-members', members: Object.fromEntries(others) });
  if (thinkingText !== null)
    events.push({ type: 'reasoning-delta', member: thinkingText, json: [jsonInside(delta[thinkingText] as string)] });
}

const choiceOf = ({ choices }: JsonObject): JsonObject | undefined =>
  (choices as readonly JsonObject[] | undefined)?.[0];

/** The member of a message or a delta that has its thinking. Some servers send it under both names. */
const thinkingMember = (message: JsonObject): string | null =>
  ['reasoning_content', 'reasoning'].find((name) => typeof message[name] === 'string' && message[name] !== '') ?? null;

type TextOrFile = Extract<Part, { readonly kind: 'text' | 'file' }>;

/** Everything of a message or a delta that a client can show: content, a refusal, and images. Texts are not empty. */
function partsOfMessage({ content, refusal, images }: JsonObject): readonly TextOrFile[] {
  if (typeof content === 'string' && !refusal && !images)
    return content === '' ? [] : [{ kind: 'text', text: content }];
  return [...textIn(content), ...textIn(refusal), ...(Array.isArray(images) ? images.flatMap(partOfImage) : [])];
}

const textIn = (text: unknown): readonly TextOrFile[] =>
  typeof text === 'string' && text !== '' ? [{ kind: 'text', text }] : [];

function partOfImage(item: unknown): readonly TextOrFile[] {
  if (typeof item !== 'object' || item === null) return [];
  const { image_url: image } = item as { readonly image_url?: { readonly url?: unknown } | null };
  const url = image?.url;
  if (typeof url !== 'string') return [];
  const data = /^data:([\w.+-]+\/[\w.+-]+);base64,/.exec(url.slice(0, 256));
  const file = { kind: 'file', mediaType: data?.[1] ?? null, name: null } as const;
  return [data ? { ...file, url: null, bytes: url.slice(data[0].length) } : { ...file, url, bytes: null }];
}

/** Citations of one reply that are passed on: each becomes an event. */
const CITATIONS_MAX = 256;

function citationsOf({ annotations }: JsonObject): readonly Citation[] {
  if (!Array.isArray(annotations)) return [];
  return (annotations as readonly unknown[]).slice(0, CITATIONS_MAX).flatMap((one) => {
    const { url_citation: cited } = (one ?? {}) as { readonly url_citation?: JsonObject | null };
    const { url, title, start_index: start, end_index: end } = cited ?? {};
    const placeOf = (place: unknown) => (Number.isSafeInteger(place) ? (place as number) : 0);
    return typeof url === 'string'
      ? [{ url, title: typeof title === 'string' ? title : '', start: placeOf(start), end: placeOf(end) }]
      : [];
  });
}

/** An image of a model as text, for a wire that has only text. */
export const imageText = ({ mediaType, url, bytes }: FilePart): string =>
  `\n![image](${url ?? `data:${mediaType ?? 'application/octet-stream'};base64,${bytes ?? ''}`})\n`;

/**
 * The end of a chat reply. `body`: the last chunk, or a whole completion, with the error of a reply that failed.
 * `usage`: with its cost.
 */
export function chatEndOf(body: JsonObject, usage: JsonObject): ChatEnd {
  const { finish_reason: finish, stop_reason: sequence } = choiceOf(body) ?? {};
  const { error, tollgate } = body;
  return {
    finish: finishReasonOf(finish),
    stopSequence: typeof sequence === 'string' ? sequence : null,
    usage,
    fault: (error as ChatFault | null | undefined) ?? noteOf(tollgate),
    tollgate,
  };
}

/** The reason why a whole reply was cut is in `tollgate.note`. */
const noteOf = (tollgate: unknown): ChatFault | null =>
  (tollgate as { readonly note?: ChatFault } | undefined)?.note ?? null;

/** The content of a chat completion. `ids`: makes the ids of its calls for the client. */
export function saidBy(completion: JsonObject, ids: ToolCallIds): ChatSaid {
  const message = (choiceOf(completion)?.['message'] ?? {}) as JsonObject;
  const calls = Array.isArray(message['tool_calls']) ? (message['tool_calls'] as readonly JsonObject[]) : [];
  ids.hear(message);
  const echoFields = new EchoFields();
  echoFields.add(message);
  const parts = partsOfMessage(message);
  return {
    citations: citationsOf(message),
    members: echoFields.members,
    thinking: String(message[thinkingMember(message) ?? ''] ?? ''),
    text: parts.map((part) => (part.kind === 'text' ? part.text : imageText(part))).join(''),
    parts,
    calls: calls.map((call) => {
      const { name, arguments: argumentValue } = (call['function'] ?? {}) as JsonObject;
      return {
        id: ids.idOf(String(call['id']), call),
        name: typeof name === 'string' ? name : '',
        arguments: typeof argumentValue === 'string' ? argumentValue : '',
      };
    }),
  };
}

/** The most tool calls of one reply. Further calls are ignored, because a stream has room for millions. */
export const CALLS_MAX = 1_024;
