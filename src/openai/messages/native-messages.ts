import { isObject } from '#wire';
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
import { isCount, unfallen } from '../chat/chat-usage.ts';
import { event } from './message-blocks.ts';

type Json = Readonly<Record<string, unknown>>;

/** Reads the replies of Anthropic's Messages API. `model` is the name that they carry. */
export function createMessagesSpeech(model: string): NativeSpeech {
  return new MessagesSpeech(model);
}

class MessagesSpeech implements NativeSpeech {
  finish: string | null = null;
  isOver = false;
  readonly #model: string;
  /**
   * The latest value of each count. A stream states some counts at its beginning, which may be estimates, and all at
   * its end.
   */
  #usage: Json = {};
  #held: Json | null = null;
  #open: unknown = null;

  constructor(model: string) {
    this.#model = model;
  }

  get claim(): Json | null {
    return claimOf(this.#usage);
  }

  take(type: string, given: Json, text: string): string | null {
    switch (type) {
      case 'message_start': {
        const { message } = given;
        if (!isObject(message)) throw malformed('its stream began without a message');
        this.#takeUsage(message['usage']);
        return 'model' in message ? withMembersOf(text, given, 'message', { model: this.#model }) : text;
      }
      case 'content_block_start':
        this.#open = given['index'] ?? null;
        return text;
      case 'content_block_stop':
        this.#open = null;
        return text;
      case 'message_delta': {
        const before = this.#usage;
        this.#takeUsage(given['usage']);
        const larger = this.#held === null ? this.#usage : largerUsage(before, this.#usage);
        this.#held = larger === this.#usage ? given : { ...given, usage: { ...(given['usage'] as object), ...larger } };
        this.#usage = larger;
        this.#stopped((given['delta'] as Json | null | undefined)?.['stop_reason']);
        return null;
      }
      case 'message_stop':
        this.isOver = true;
        return null;
      case 'error':
        throw failedByItsOwnWords(given['error']);
      default:
        return text;
    }
  }

  sizeOf(type: string, { delta, content_block: block }: Json): EventSize {
    if (type === 'content_block_start' && isObject(block)) return sizeOfBlock(block);
    if (type !== 'content_block_delta' || !isObject(delta)) return NOTHING;
    const { text, thinking, partial_json: json } = delta;
    const texts = stringsOf(text, thinking, json);
    return { texts, other: texts.length > 0 ? 0 : jsonBytes(delta) };
  }

  last(end: NativeEnd): string {
    if (end.isBroken || this.#held === null) return this.#endOfCut(end);
    const { usage: given, ...rest } = this.#held;
    const told = isObject(given) ? given : {};
    // The counts of a cache may come only at the beginning of the stream.
    const used = shown(end.isCorrected ? { ...told, ...this.#usage } : told, end);
    return eventText('message_delta', JSON.stringify({ ...rest, usage: used })) + STOP;
  }

  takeWhole(reply: Json): EventSize {
    const { content, usage: given, stop_reason: reason } = reply;
    if (!Array.isArray(content)) throw malformed('its reply has no content');
    this.#takeUsage(given);
    this.#stopped(reason);
    return sumOf((content as unknown[]).map((block) => (isObject(block) ? sizeOfBlock(block) : NOTHING)));
  }

  whole(text: string, reply: Json, end: NativeEnd): string {
    const given = reply['usage'];
    const used = shown(isObject(given) ? given : {}, end);
    return withMembersOf(text.trim(), reply, null, { model: this.#model, usage: used });
  }

  cutWhole(said: string, end: NativeEnd): string {
    const message = { id: 'msg_cut', type: 'message', role: 'assistant', model: this.#model };
    const content = said === '' ? [] : [{ type: 'text', text: said }];
    const stop = { stop_reason: 'max_tokens', stop_sequence: null };
    return JSON.stringify({ ...message, content, ...stop, usage: shown(this.#usage, end), ...noteOf(end.cut) });
  }

  #takeUsage(given: unknown): void {
    if (!isObject(given)) return;
    const counts: Record<string, unknown> = {};
    for (const name of COUNTS) if (typeof given[name] === 'number') counts[name] = given[name];
    const { output_tokens_details: details } = given;
    const thinking = isObject(details) ? details['thinking_tokens'] : null;
    if (typeof thinking === 'number') counts['output_tokens_details'] = { thinking_tokens: thinking };
    this.#usage = { ...this.#usage, ...counts };
  }

  #stopped(reason: unknown): void {
    if (typeof reason === 'string' && reason !== '') this.finish = reason;
  }

  /** The end of a reply that was cut. */
  #endOfCut(end: NativeEnd): string {
    const delta = { stop_reason: 'max_tokens', stop_sequence: null };
    const stop = this.#open === null ? '' : event('content_block_stop', { index: this.#open });
    return stop + event('message_delta', { delta, usage: shown(this.#usage, end), ...noteOf(end.cut) }) + STOP;
  }
}

/** Only these counts are kept, because a stream may send its usage thousands of times, with any other members. */
const COUNTS = ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] as const;
const OF_PROMPT = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] as const;
const OF_OUTPUT = ['output_tokens', 'output_tokens_details'] as const;
const STOP = event('message_stop', {});

/**
 * The output in a block. Results of the provider's tools are not text of the model, and encrypted content is not
 * readable. Both count as other output.
 */
function sizeOfBlock(block: Json): EventSize {
  const { type, text, thinking, name, input } = block;
  if (type === 'text') return { texts: stringsOf(text), other: 0 };
  if (type === 'thinking') return { texts: stringsOf(thinking), other: bytesOf(block['signature']) };
  if (type !== 'tool_use') return { texts: [], other: jsonBytes(block) };
  const given = isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : null;
  return { texts: stringsOf(name, given), other: FRAME_BYTES };
}

/** The usage after a second end of a message. A running total never falls, so smaller counts replace no larger ones. */
function largerUsage(before: Json, now: Json): Json {
  const sum = (usage: Json, names: readonly string[]) =>
    names.reduce((total, name) => total + (isCount(usage[name]) ? usage[name] : 0), 0);
  const counts = [OF_PROMPT, OF_OUTPUT].map((members) => ({
    was: sum(before, members),
    is: sum(now, members),
    members,
  }));
  return unfallen(before, now, counts);
}

/** The claim in the form of chat. Anthropic does not count cached tokens as input tokens. */
function claimOf(usage: Json): Json | null {
  const { input_tokens: input, output_tokens: output, output_tokens_details: details } = usage;
  if (input === undefined && output === undefined) return null;
  const { cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0 } = usage;
  const prompt = isCount(input) && isCount(read) && isCount(written) ? input + read + written : null;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    completion_tokens_details: { reasoning_tokens: (details as Json | null | undefined)?.['thinking_tokens'] },
  };
}

/** The usage of a reply with its cost. If the billed usage differs from the claim, it has the billed numbers. */
function shown(claimed: Json, { usage, cost, isCorrected }: NativeEnd): Json {
  if (!isCorrected) return { ...claimed, ...cost };
  const { prompt_tokens: prompt, completion_tokens: completion, estimated } = usage;
  const count = (value: unknown) => (isCount(value) ? value : 0);
  const read = Math.min(count(claimed['cache_read_input_tokens']), count(prompt));
  const written = Math.min(count(claimed['cache_creation_input_tokens']), count(prompt) - read);
  return {
    ...claimed,
    input_tokens: count(prompt) - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    ...(isObject(claimed['cache_creation']) ? { cache_creation: splitOf(claimed['cache_creation'], written) } : {}),
    output_tokens: completion,
    ...(estimated === undefined ? {} : { estimated }),
    ...cost,
  };
}

/** The tokens that were written to a cache, by their time in it. Together they are at most `written`. */
function splitOf(claimed: Json, written: number): Json {
  let left = written;
  return Object.fromEntries(
    Object.entries(claimed).map(([time, value]) => {
      if (!isCount(value)) return [time, value];
      const tokens = Math.min(value, left);
      left -= tokens;
      return [time, tokens];
    }),
  );
}
