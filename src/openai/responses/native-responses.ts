import { isObject, type JsonObject } from '#wire';
import { failedByItsOwnWords, malformed } from '#wire/replies';
import {
  bytesOf,
  eventText,
  type EventSize,
  FRAME_BYTES,
  jsonBytes,
  type NativeEnd,
  type NativeSpeech,
  noteOf,
  NOTHING,
  sumOf,
  stringsOf,
  withMembersOf,
} from '../native/native-speech.ts';
import { costNamed } from './response-object.ts';

type Json = Readonly<Record<string, unknown>>;

/**
 * Most characters of finished items that are kept in case the reply is cut: as many as of a reply that is not
 * streamed. Later items are left out.
 */
const KEPT_MAX = 2 * 1024 * 1024;
const ENDS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed']);

/**
 * Reads the replies of OpenAI's Responses API. The client's response has this name of the model, and the members `told`
 * instead of the provider's.
 */
export function createResponsesSpeech(model: string, told: Json = {}): NativeSpeech {
  return new ResponsesSpeech({ model, ...told });
}

class ResponsesSpeech implements NativeSpeech {
  finish: string | null = null;
  readonly #own: Json;
  #usage: JsonObject | null = null;
  #held: { readonly type: string; readonly event: Json; readonly text: string } | null = null;
  #sequence = 0;
  /** The response as it began, and its finished items. A cut reply is made of them. */
  #begun: JsonObject = {};
  readonly #items: unknown[] = [];
  #keptLength = 0;

  constructor(told: Json) {
    this.#own = told;
  }

  get claim(): Json | null {
    return this.#usage === null ? null : claimOf(this.#usage);
  }

  get isOver(): boolean {
    return this.#held !== null;
  }

  take(type: string, event: Json, text: string): string | null {
    if (typeof event['sequence_number'] === 'number') this.#sequence = event['sequence_number'] + 1;
    if (type === 'error') throw failedByItsOwnWords(isObject(event['error']) ? event['error'] : event);
    const { response } = event;
    if (ENDS.has(type)) {
      if (!isObject(response)) throw malformed('its last event has no response');
      this.#takeResponse(response);
      this.#held = { type, event, text };
      return null;
    }
    if (type === 'response.output_item.done') {
      this.#keptLength += text.length;
      if (this.#keptLength <= KEPT_MAX) this.#items.push(event['item']);
    }
    if (!isObject(response)) return text;
    if (text.length <= KEPT_MAX) this.#begun = response;
    return 'model' in response ? withMembersOf(text, event, 'response', this.#own) : text;
  }

  sizeOf(type: string, { delta, item }: Json): EventSize {
    if (type.endsWith('.delta')) return { texts: stringsOf(delta), other: 0 };
    if (type !== 'response.output_item.done' || !isObject(item)) return NOTHING;
    // No delta has the content of other items.
    return {
      texts: [],
      other: TOLD_BY_DELTAS.has(item['type']) ? FRAME_BYTES + bytesOf(item['encrypted_content']) : jsonBytes(item),
    };
  }

  last(end: NativeEnd, passed: number | null): string {
    const held = this.#held;
    if (end.isBroken || held === null) {
      const next = Math.max(this.#sequence, (passed ?? -1) + 1);
      const response = this.#cutResponse(this.#items, end);
      const data = { type: 'response.incomplete', sequence_number: next, response };
      return eventText(data.type, JSON.stringify(data));
    }
    return eventText(held.type, withMembersOf(held.text, held.event, 'response', this.#told(end)));
  }

  takeWhole(reply: Json): EventSize {
    const { output } = reply;
    if (!Array.isArray(output)) throw malformed('its reply has no output');
    this.#takeResponse(reply);
    return sumOf((output as unknown[]).map(sizeOfItem));
  }

  whole(text: string, reply: Json, end: NativeEnd): string {
    return withMembersOf(text.trim(), reply, null, this.#told(end));
  }

  cutWhole(said: string, end: NativeEnd): string {
    const content = [{ type: 'output_text', text: said, annotations: [] }];
    const { id = 'resp_cut' } = this.#own as { readonly id?: string };
    // Later requests can name the message of a response that is kept: its id contains that of the response.
    const message = { type: 'message', id: itemIdOf(id), role: 'assistant', status: 'incomplete', content };
    return JSON.stringify({ id, ...this.#cutResponse(said === '' ? [] : [message], end) });
  }

  #takeResponse(response: JsonObject): void {
    if (isObject(response['usage'])) this.#usage = response['usage'];
    const { status, incomplete_details: details, error } = response;
    if (isObject(error)) throw failedByItsOwnWords(error);
    if (status === 'failed' || status === 'cancelled')
      throw failedByItsOwnWords({ message: `the response is ${status}` });
    const reason = isObject(details) ? details['reason'] : null;
    if (typeof reason === 'string') this.finish = reason;
    else if (typeof status === 'string') this.finish = status;
  }

  #told(end: NativeEnd): Json {
    return { ...this.#own, usage: shown(this.#usage ?? {}, end) };
  }

  #cutResponse(output: readonly unknown[], end: NativeEnd): Json {
    return {
      ...this.#begun,
      object: 'response',
      ...this.#own,
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output,
      usage: shown(this.#usage ?? {}, end),
      ...noteOf(end.cut),
    };
  }
}

const itemIdOf = (responseId: string): string => `${responseId.replace(/^resp/, 'msg')}_0`;

const TOLD_BY_DELTAS: ReadonlySet<unknown> = new Set(['message', 'function_call', 'custom_tool_call', 'reasoning']);
function sizeOfItem(item: unknown): EventSize {
  if (!isObject(item)) return NOTHING;
  const { type, content, summary, name, arguments: given, input, encrypted_content: sealed } = item;
  if (!TOLD_BY_DELTAS.has(type)) return { texts: [], other: jsonBytes(item) };
  const parts = [content, summary].flatMap((one) => (Array.isArray(one) ? (one as unknown[]) : []));
  const said = parts.flatMap((part) => (isObject(part) ? [part['text'], part['refusal']] : []));
  return { texts: stringsOf(...said, name, given, input), other: FRAME_BYTES + bytesOf(sealed) };
}

/** The claim in the form of chat. */
function claimOf(usage: Json): Json {
  const { input_tokens: prompt, output_tokens: completion, total_tokens: total } = usage;
  const { input_tokens_details: ofPrompt, output_tokens_details: ofCompletion } = usage;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
    prompt_tokens_details: ofPrompt,
    completion_tokens_details: ofCompletion,
  };
}

const NO_CACHE = { cached_tokens: 0, cache_write_tokens: 0 };

/** The usage of a reply with its cost. If the billed usage differs from the claim, it has the billed numbers. */
function shown(given: Json, { usage, cost, isCorrected }: NativeEnd): Json {
  const { input_tokens_details: details } = given;
  // Clients that read the API strictly fail without both members.
  const claimed = isObject(details) ? { ...given, input_tokens_details: { ...NO_CACHE, ...details } } : given;
  const named = { ...cost, ...costNamed(cost) };
  if (!isCorrected) return { ...claimed, ...named };
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total, estimated } = usage;
  const billed = { input_tokens: input, output_tokens: output, total_tokens: total };
  return { ...claimed, ...billed, ...(estimated === undefined ? {} : { estimated }), ...named };
}
