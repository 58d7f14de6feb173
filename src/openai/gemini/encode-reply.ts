import type { JsonObject } from '#wire';
import { type FilePart, jsonInside } from '#bridge';
import { EchoFields, isEmpty } from '../chat/reply/echo-fields.ts';
import { tokenDetails } from '../chat/reply/chat-usage.ts';
import { CALLS_MAX, imageText } from '../chat/reply/chat-decoder.ts';
import type { WireRequest } from '../translated/wire-request.ts';
import { argumentsOf, isCutCall, isOpenJson, type WireEncoder } from '../translated/wire-encoder.ts';
import { toGeminiFault } from './errors.ts';
import { signedCall, toSignature } from './signatures.ts';
import type { ChatEnd, ChatFault, ChatSaid } from '../chat/reply/chat-content.ts';
import { endsEarly, type FinishReason } from '../chat/reply/finish-reason.ts';

interface GeminiEncoderOptions {
  readonly responseId: string;
  readonly model: string;
  readonly showsThoughts: boolean;
  readonly request: WireRequest;
}

interface OpenCall {
  readonly id: string;
  readonly name: string;
  json: string;
}

/** Writes a chat reply as an answer of the Gemini API. A stream is written as server-sent events. */
export function createGeminiEncoder(options: GeminiEncoderOptions): WireEncoder {
  return new GeminiEncoder(options);
}

class GeminiEncoder implements WireEncoder {
  readonly #options: GeminiEncoderOptions;
  readonly #base: JsonObject;
  readonly #text: EventFrame;
  readonly #thought: EventFrame;
  readonly #calls = new Map<number, OpenCall>();
  /** Signs the thoughts since the last part of another kind; null before a thought. */
  #signing: ReturnType<WireRequest['seals']['signing']> | null = null;
  #out = '';
  readonly #echoFields = new EchoFields();

  constructor(options: GeminiEncoderOptions) {
    const { model, responseId } = options;
    this.#options = options;
    this.#base = { modelVersion: model, responseId };
    this.#text = frameOf({ text: PLACE }, this.#base);
    this.#thought = frameOf({ text: PLACE, thought: true }, this.#base);
  }

  begin(): void {}

  text(run: readonly string[]): void {
    this.#endThought();
    const { before, after } = this.#text;
    for (const json of run) this.#out += before + json + after;
  }

  thinking(json: string): void {
    const { showsThoughts, request } = this.#options;
    if (!showsThoughts) return;
    this.#signing ??= request.seals.signing();
    this.#signing.add(JSON.parse(`"${json}"`) as string);
    const { before, after } = this.#thought;
    this.#out += before + json + after;
  }

  members(members: JsonObject): void {
    this.#echoFields.add(members);
  }

  /** A call is one part of the last event, because it has no parts of its own in this API. */
  call(index: number, id: string, name: string): void {
    if (this.#calls.size < CALLS_MAX) this.#calls.set(index, { id, name, json: '' });
  }

  arguments(index: number, json: string): void {
    const call = this.#calls.get(index);
    if (call !== undefined) call.json += json;
  }

  file(file: FilePart): void {
    this.#endThought();
    const part = partOfFile(file);
    if (part === null) this.text([jsonInside(imageText(file))]);
    else this.#write({ candidates: [candidateOf([part])], ...this.#base });
  }

  /** Empty lines. Clients of this API do not know the comments of server-sent events. */
  ping(): void {
    this.#out += '\n\n';
  }

  end(end: ChatEnd): void {
    this.#endThought();
    const calls = [...this.#calls.values()].map(({ id, name, json }) => ({
      id,
      name,
      arguments: JSON.parse(`"${json}"`) as string,
    }));
    const signature = this.#signatureOf(this.#echoFields.members, calls);
    const parts = this.#partsOfCalls(calls, end);
    if (signature !== null) parts.unshift({ text: '', ...signature });
    // Clients do not keep an answer that has an event without parts.
    const candidate = candidateOf(parts.length === 0 ? [NO_TEXT] : parts);
    this.#write(this.#ended([{ ...candidate, ...finishOf(end, calls) }], end));
  }

  fail(fault: ChatFault): void {
    this.#write({ error: toGeminiFault(fault) });
  }

  take(): string {
    const written = this.#out;
    this.#out = '';
    return written;
  }

  wholeFailure(fault: ChatFault): JsonObject {
    return { error: toGeminiFault(fault) };
  }

  whole(chatContent: ChatSaid, end: ChatEnd): JsonObject {
    const { thinking, members, calls } = chatContent;
    const { showsThoughts, request } = this.#options;
    const parts: JsonObject[] = [];
    if (thinking !== '' && showsThoughts) {
      const signing = request.seals.signing();
      signing.add(thinking);
      parts.push({ text: thinking, thought: true, thoughtSignature: toSignature(signing.signature({})) });
    }
    const signature = this.#signatureOf(members, calls);
    for (const part of chatContent.parts)
      parts.push(part.kind === 'text' ? { text: part.text } : (partOfFile(part) ?? { text: imageText(part) }));
    const last = parts.at(-1);
    if (signature !== null && typeof last?.['text'] === 'string' && last['thought'] !== true)
      parts.splice(-1, 1, { ...last, ...signature });
    else if (signature !== null) parts.push({ text: '', ...signature });
    parts.push(...this.#partsOfCalls(calls, end));
    const candidate = candidateOf(parts.length === 0 ? [NO_TEXT] : parts);
    return this.#ended([{ ...candidate, ...finishOf(end, calls) }], end);
  }

  #write(event: JsonObject): void {
    this.#out += `data: ${JSON.stringify(event)}\n\n`;
  }

  /** Writes the signature of the thoughts that were shown. */
  #endThought(): void {
    if (this.#signing === null) return;
    const part = { text: '', thought: true, thoughtSignature: toSignature(this.#signing.signature({})) };
    this.#signing = null;
    this.#write({ candidates: [candidateOf([part])], ...this.#base });
  }

  /**
   * The signature of a text, with what the provider wants back; null if a call contains it. Clients send it back even
   * if they do not keep thoughts.
   */
  #signatureOf(members: JsonObject, calls: ChatSaid['calls']): JsonObject | null {
    const { seals } = this.#options.request;
    if (isEmpty(members) || calls.some(({ id }) => seals.holds(members, id))) return null;
    return { thoughtSignature: toSignature(seals.seal(members)) };
  }

  #partsOfCalls(calls: ChatSaid['calls'], end: ChatEnd): JsonObject[] {
    return calls.flatMap(({ id, name, arguments: argumentText }, index) => {
      // Clients run each call that they get.
      if (isCutCall(argumentText, index === calls.length - 1, end)) return [];
      const { thoughtSignature, id: shownId } = signedCall(id);
      const functionCall = {
        id: shownId,
        name: this.#options.request.toolNames.long(name),
        args: argumentsOf(argumentText),
      };
      return [thoughtSignature === undefined ? { functionCall } : { functionCall, thoughtSignature }];
    });
  }

  #ended(candidates: readonly JsonObject[], end: ChatEnd): JsonObject {
    const { tollgate } = end;
    return {
      candidates,
      usageMetadata: usageMetadataOf(end.usage ?? {}),
      ...this.#base,
      ...(tollgate === undefined ? {} : { tollgate }),
    };
  }
}

const candidateOf = (parts: readonly JsonObject[]) => ({ content: { parts, role: 'model' }, index: 0 });
const NO_TEXT = { text: '' };

const PLACE = 'tollgate:the-text-goes-here';

interface EventFrame {
  readonly before: string;
  readonly after: string;
}

function frameOf(part: JsonObject, base: JsonObject): EventFrame {
  const event = `data: ${JSON.stringify({ candidates: [candidateOf([part])], ...base })}\n\n`;
  const at = event.indexOf(PLACE);
  return { before: event.slice(0, at), after: event.slice(at + PLACE.length) };
}

/** A file of the model; null for an address without a media type, which clients could not read. */
const partOfFile = ({ mediaType, bytes, url }: FilePart): JsonObject | null => {
  if (bytes !== null && mediaType !== null) return { inlineData: { mimeType: mediaType, data: bytes } };
  return url !== null && mediaType !== null ? { fileData: { mimeType: mediaType, fileUri: url } } : null;
};

const REASONS: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  length: 'MAX_TOKENS',
  tool_calls: 'STOP',
  function_call: 'STOP',
  content_filter: 'SAFETY',
  error: 'MAX_TOKENS',
};

/** A charged reply that was cut becomes an answer at its limit instead of an error, so that no client retries it. */
function finishOf(end: ChatEnd, calls: ChatSaid['calls']): JsonObject {
  const { fault, finish } = end;
  if (fault !== null) return { finishReason: 'MAX_TOKENS', finishMessage: fault.message };
  const isMalformed = !endsEarly(finish) && calls.some(({ arguments: argumentText }) => isOpenJson(argumentText));
  return { finishReason: isMalformed ? 'MALFORMED_FUNCTION_CALL' : REASONS[finish ?? 'stop'] };
}

const count = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** The usage of a chat reply as this API counts it: thoughts are counted apart from the rest of the answer. */
export function usageMetadataOf(usage: JsonObject): JsonObject {
  const {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: _total,
    prompt_tokens_details: _details,
    completion_tokens_details: _of,
    cache_read_input_tokens: _read,
    cache_creation_input_tokens: _written,
    prompt_cache_hit_tokens: _hit,
    prompt_cache_miss_tokens: _miss,
    ...more
  } = usage;
  const { cached, reasoning } = tokenDetails(usage, count(prompt), count(completion));
  return {
    promptTokenCount: count(prompt),
    ...(cached > 0 ? { cachedContentTokenCount: cached } : {}),
    candidatesTokenCount: count(completion) - reasoning,
    ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {}),
    totalTokenCount: count(prompt) + count(completion),
    ...more,
  };
}
