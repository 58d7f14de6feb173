import { isObject } from '#wire';
import { type ChatEnd, type ChatFault, type ChatSaid, jsonInside, type Voice } from './voice.ts';

type Json = Record<string, unknown>;

/** Reads the stream that the chat wire gives its clients, as it comes: whole events. */
interface ChatPieces {
  /** Says what the events hold. The end of the reply, once it came. */
  read(bytes: Uint8Array, voice: Voice): ChatEnd | null;
}

/** The bytes around the text of a chunk that has nothing else new. */
interface TextForm {
  readonly before: string;
  readonly after: string;
}

const CONTENT = '"content":"';
/** The inside of one JSON string. */
const INSIDE = /^(?:[^"\\]|\\.)*$/s;

export function createChatPieces(): ChatPieces {
  let form: TextForm | null = null;

  /** The text of an event in the form of an earlier one; null for another event. */
  function knownText(event: string): string | null {
    if (form === null) return null;
    const { before, after } = form;
    const from = before.length;
    const to = event.length - after.length;
    // A slice is compared at once, where startsWith goes by characters.
    if (to < from || event.slice(0, from) !== before || event.slice(to) !== after) return null;
    const inside = event.slice(from, to);
    // Nearly all texts have no quotation mark, and then there is nothing to look for.
    return !inside.includes('"') || INSIDE.test(inside) ? inside : null;
  }

  return {
    read(bytes, voice) {
      let end: ChatEnd | null = null;
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
      for (let at = 0; at < text.length;) {
        const stop = text.indexOf('\n\n', at);
        const event = stop === -1 ? text.slice(at) : text.slice(at, stop);
        at = stop === -1 ? text.length : stop + 2;
        const known = knownText(event);
        if (known === '') continue;
        if (known !== null) voice.text(known);
        else if (event.startsWith(':')) voice.ping();
        else if (event.startsWith('data: {')) {
          const chunk = JSON.parse(event.slice('data: '.length)) as Json;
          const delta = deltaOf(chunk);
          form = (delta && formOf(event, delta)) ?? form;
          if (delta) sayDelta(delta, voice);
          // Some servers write a null for what there is not.
          if ((chunk['usage'] ?? null) !== null || (chunk['error'] ?? null) !== null) end = endOf(chunk);
        }
      }
      return end;
    },
  };
}

const choiceOf = ({ choices }: Json): Json | undefined => (choices as readonly Json[] | undefined)?.[0];
const deltaOf = (chunk: Json): Json | undefined => choiceOf(chunk)?.['delta'] as Json | undefined;

/** The form of an event whose delta is a text alone; null for another one. */
function formOf(event: string, delta: Json): TextForm | null {
  const { content } = delta;
  if (typeof content !== 'string' || content === '' || textOf(delta) !== content) return null;
  if (thinkingOf(delta) !== '' || Array.isArray(delta['tool_calls']) || /"(?:usage|error)":/.test(event)) return null;
  const inside = jsonInside(content);
  const at = event.indexOf(`${CONTENT}${inside}"`);
  if (at === -1) return null;
  const start = at + CONTENT.length;
  return { before: event.slice(0, start), after: event.slice(start + inside.length) };
}

function sayDelta(delta: Json, voice: Voice): void {
  const { tool_calls: calls } = delta;
  const thinking = thinkingOf(delta);
  if (thinking !== '') voice.thinking(jsonInside(thinking));
  const text = textOf(delta);
  if (text !== '') voice.text(jsonInside(text));
  if (!Array.isArray(calls)) return;
  for (const call of calls as readonly Json[]) {
    const index = call['index'] as number;
    const { name, arguments: given } = (call['function'] ?? {}) as Json;
    if (typeof call['id'] === 'string') voice.call(index, call['id'], typeof name === 'string' ? name : '');
    if (typeof given === 'string' && given !== '') voice.arguments(index, jsonInside(given));
  }
}

/** The thinking in a message or a delta. Some servers give it under both of its names. */
const thinkingOf = ({ reasoning_content: one, reasoning: other }: Json): string =>
  typeof one === 'string' && one !== '' ? one : typeof other === 'string' ? other : '';

/** Everything that a client can show as text: words, a refusal, and images as links of markdown. */
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

/** A reply in one piece tells there why it is not whole. */
const noteOf = ({ tollgate }: Json): ChatFault | null =>
  (tollgate as { readonly note?: ChatFault } | undefined)?.note ?? null;

/** A chat completion, as it was said and how it ended. */
export function readCompletion(completion: Json): { readonly said: ChatSaid; readonly end: ChatEnd } {
  const message = (choiceOf(completion)?.['message'] ?? {}) as Json;
  const calls = Array.isArray(message['tool_calls']) ? (message['tool_calls'] as readonly unknown[]) : [];
  return {
    said: {
      thinking: thinkingOf(message),
      text: textOf(message),
      calls: calls.filter(isObject).map((call, index) => {
        const { name, arguments: given } = (call['function'] ?? {}) as Json;
        return {
          // Of its own in the whole conversation.
          id:
            typeof call['id'] === 'string' && call['id'] !== ''
              ? call['id']
              : `call_${String(completion['id'])}_${index}`,
          name: typeof name === 'string' ? name : '',
          arguments: typeof given === 'string' ? given : given === undefined ? '' : JSON.stringify(given),
        };
      }),
    },
    end: endOf(completion),
  };
}
