import { isObject, type JsonObject } from '#wire';
import { failedByItsOwnWords, isError, malformed } from '#wire/replies';
import {
  type Passthrough,
  type Lists,
  type NativeEnd,
  type NativeDecoder,
  noteOf,
  withMembersOf,
} from '../native/passthrough.ts';
import { OutputSize } from '../native/output-size.ts';
import { boundedReasoning } from '../chat/request/forwarded-body.ts';
import { isSealedCall } from '../chat/reply/echo-fields.ts';
import { isSealedHere } from '../chat/reply/sealed-thinking.ts';
import { bytesOfBase64 } from '../chat/reply/output-bound.ts';
import { addSound, NO_SOUND, type Sound, soundOf } from '../chat/request/sound.ts';
import { isCount, withCounts } from '../chat/reply/chat-usage.ts';
import { asksForSound, hostedTool, isSearchTool, outputs, type PaidExtra } from '../chat/price/paid-extras.ts';
import type { Content } from './schema.ts';
import { usageMetadataOf } from './encode-reply.ts';
import { byModality, COUNTS, DETAILS, largerUsage } from './usage.ts';
import { textInSignature } from './signatures.ts';

const FIELDS: ReadonlySet<string> = new Set([
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'generationConfig',
  'safetySettings',
]);

/** Members of `generationConfig` that every provider gets. Others may cost more than tokens. */
const CONFIG: ReadonlySet<string> = new Set([
  'temperature',
  'topP',
  'topK',
  'maxOutputTokens',
  'stopSequences',
  'presencePenalty',
  'frequencyPenalty',
  'seed',
  'responseMimeType',
  'responseSchema',
  'responseJsonSchema',
  'responseModalities',
  'responseLogprobs',
  'logprobs',
  'thinkingConfig',
  'mediaResolution',
  'speechConfig',
  'imageConfig',
]);

/** A signature that this gateway did not make. In base64, its own begin with these letters. */
const SIGNATURE = /"thought_?[sS]ignature":\s*"(?!"|dGc(?:xL|yL|zX))/;
/** Parts that a chat request cannot have. */
const LOST = /"(?:executable_?[cC]ode|code_?[eE]xecution_?[rR]esult|video_?[mM]etadata|media_?[rR]esolution)"/;

export const GEMINI_PASSTHROUGH: Passthrough = {
  name: 'gemini',
  cap: 'generationConfig',
  capIn: ({ generationConfig: config }) => {
    const cap = isObject(config) ? config['maxOutputTokens'] : null;
    return typeof cap === 'number' ? cap : null;
  },
  capped: ({ generationConfig: config }, { tokens, isSet }, lists) =>
    configFor(isObject(config) ? config : {}, tokens, isSet, lists),
  addressed: new Set(['model', 'stream']),
  prompt: 'contents',
  fields: FIELDS,
  changed({ contents }) {
    const own = withoutOwnSignatures(contents as readonly Content[]);
    return { sent: own === contents ? {} : { contents: JSON.stringify(own) }, dropped: [] };
  },
  hidesPrompt: ({ contents }) =>
    (contents as readonly Content[]).some(({ parts }) => (parts ?? []).some(hasHiddenFile)),
  growsPrompt: ({ tools }) =>
    Array.isArray(tools) && (tools as unknown[]).some((tool) => isObject(tool) && runsThere(tool)),
  pictures(contents) {
    const counts = { images: 0, bytes: 0 };
    for (const { parts } of contents as readonly Content[])
      for (const part of parts ?? []) {
        const picture = picturesIn(part);
        counts.images += picture.images;
        counts.bytes += picture.bytes;
      }
    return counts;
  },
  sound: (contents) =>
    (contents as readonly Content[])
      .flatMap(({ parts }) => parts ?? [])
      .reduce<Sound | null>((sum, part) => addSound(sum, soundOfPart(part)), NO_SOUND),
  extras: extrasOf,
  asks: ({ contents, tools, generationConfig }) => ({
    audio: (contents as readonly Content[]).some(({ parts }) => (parts ?? []).some(mayHaveSound)),
    audioOutput: asksForSound(extrasOf({ generationConfig })),
    // Google takes no limit for searches.
    ...(Array.isArray(tools) && (tools as unknown[]).some((tool) => isObject(tool) && searches(tool))
      ? { webSearches: { sure: 0, open: 1, unlimited: true } }
      : {}),
  }),
  loses: (text) => SIGNATURE.test(text) || LOST.test(text),
  decoder: (model) => createGeminiDecoder(model),
};

/** The JSON text of `generationConfig` for a provider, and the names of the members that it does not get. */
function configFor(
  config: JsonObject,
  cap: number,
  isSet: boolean,
  lists: Lists,
): { readonly sent: Readonly<Record<string, string | null>>; readonly dropped: readonly string[] } {
  const sent: Record<string, unknown> = {};
  const dropped: string[] = [];
  for (const [name, value] of Object.entries(config)) {
    // One answer is priced.
    if (name === 'candidateCount') continue;
    if (CONFIG.has(name) || lists(name)) sent[name] = value;
    else dropped.push(`generationConfig.${name}`);
  }
  if (isObject(sent['thinkingConfig']))
    // The bound on thinking has to be lower than that of the answer.
    sent['thinkingConfig'] = boundedReasoning(sent['thinkingConfig'], Math.max(1, cap - 1));
  if (isSet) sent['maxOutputTokens'] = cap;
  const text = JSON.stringify(sent);
  if (text === JSON.stringify(config)) return { sent: {}, dropped };
  return { sent: { generationConfig: Object.keys(sent).length === 0 ? null : text }, dropped };
}

const runsThere = (tool: JsonObject): boolean =>
  Object.keys(tool).some((name) => name !== 'functionDeclarations' && (tool[name] ?? null) !== null);

const searches = (tool: JsonObject): boolean =>
  Object.keys(tool).some((name) => isSearchTool(name) && (tool[name] ?? null) !== null);

const OF_THE_CLIENT: ReadonlySet<string> = new Set(['functionDeclarations', 'computerUse']);

function extrasOf({ tools, generationConfig: config }: JsonObject): readonly PaidExtra[] {
  const extras = [...outputs(isObject(config) ? config['responseModalities'] : null, MODALITIES)];
  if (!Array.isArray(tools)) return extras;
  for (const [index, tool] of (tools as unknown[]).entries())
    for (const [name, member] of Object.entries(isObject(tool) ? tool : {}))
      if (!OF_THE_CLIENT.has(name) && member !== null && member !== undefined)
        extras.push(hostedTool(name, `tools[${index}].${name}`));
  return extras;
}
const MODALITIES = 'generationConfig.responseModalities';

/** Whether a part may have tokens of sound: a recording, a video, or a file of an unknown type. */
function mayHaveSound({ inlineData, fileData, functionResponse: result }: JsonObject): boolean {
  const parts = isObject(result) ? result['parts'] : null;
  if (Array.isArray(parts) && (parts as unknown[]).some((part) => isObject(part) && mayHaveSound(part))) return true;
  return [inlineData, fileData].some(
    (file) =>
      isObject(file) &&
      (!/^(?:image|text)\/|^application\/pdf$/i.test(String(file['mimeType'])) ||
        // A video at this address is one, whatever type the request names.
        /youtu\.?be/i.test(String(file['fileUri']))),
  );
}

/** The sound of a part; null if the request does not bound it. */
function soundOfPart(part: JsonObject): Sound | null {
  if (!mayHaveSound(part)) return NO_SOUND;
  const { inlineData, fileData, functionResponse: result } = part;
  const parts = isObject(result) ? result['parts'] : null;
  if (Array.isArray(parts))
    return (parts as unknown[])
      .filter(isObject)
      .reduce<Sound | null>((sum, inside) => addSound(sum, soundOfPart(inside)), NO_SOUND);
  if (!isObject(inlineData) || (fileData !== undefined && fileData !== null)) return null;
  const { mimeType, data } = inlineData;
  return soundOf({ mimeType, data });
}

/** Whether a part is a file whose tokens are not in the request: one that is fetched, or that has pages or pictures. */
function hasHiddenFile({ inlineData, fileData, functionResponse: result }: JsonObject): boolean {
  if (fileData !== undefined && fileData !== null) return true;
  const parts = isObject(result) ? result['parts'] : null;
  if (Array.isArray(parts)) return (parts as unknown[]).some((part) => isObject(part) && hasHiddenFile(part));
  if (!isObject(inlineData)) return false;
  const { mimeType, data } = inlineData;
  if (/^audio\//i.test(String(mimeType))) return soundOf({ mimeType, data }) === null;
  return !/^(?:image|text)\//i.test(String(mimeType));
}

/** The pictures of a part, and of the result of a function. Anything that is no base64 counts as text. */
function picturesIn({ inlineData, functionResponse: result }: JsonObject): {
  readonly images: number;
  readonly bytes: number;
} {
  const parts = isObject(result) ? result['parts'] : null;
  if (Array.isArray(parts))
    return (parts as unknown[])
      .filter(isObject)
      .map((part) => picturesIn({ inlineData: part['inlineData'] }))
      .reduce((sum, one) => ({ images: sum.images + one.images, bytes: sum.bytes + one.bytes }), NO_PICTURES);
  if (!isObject(inlineData) || !/^image\//i.test(String(inlineData['mimeType']))) return NO_PICTURES;
  const { data } = inlineData;
  return { images: 1, bytes: typeof data === 'string' && BASE64.test(data) ? data.length : 0 };
}

const NO_PICTURES = { images: 0, bytes: 0 };
const BASE64 = /^[\w+/=-]*$/;

/**
 * Removes the signatures of this gateway, which no provider can read, and the parts that have nothing else. Returns the
 * same value if it has no such signature.
 */
function withoutOwnSignatures(contents: readonly Content[]): readonly Content[] {
  let isChanged = false;
  const keptContents = contents.map((content) => {
    if (!(content.parts ?? []).some(isSignedHere)) return content;
    isChanged = true;
    const parts = content.parts!.flatMap((part) => {
      if (!isSignedHere(part)) return [part];
      const { thoughtSignature: _own, ...rest } = part;
      return rest['text'] === '' ? [] : [rest];
    });
    return { ...content, parts };
  });
  return isChanged ? keptContents.filter(({ parts }) => (parts ?? []).length > 0) : contents;
}

function isSignedHere({ thoughtSignature: signature }: JsonObject): boolean {
  if (typeof signature !== 'string' || !signature.startsWith('dGc')) return false;
  const text = textInSignature(signature.slice(0, 8));
  return isSealedCall(text) || isSealedHere(text);
}

export function createGeminiDecoder(model: string): NativeDecoder {
  return new GeminiDecoder(model);
}

class GeminiDecoder implements NativeDecoder {
  readonly isUntyped = true;
  readonly usageMember = 'usageMetadata';
  readonly isOver = false;
  readonly serviceTier = null;
  finish: string | null = null;
  readonly #model: string;
  /** The largest value of each count so far. */
  #usage: Record<string, number> = {};
  /** The newest details of each count, by its modality. */
  #details: Record<string, JsonObject> = {};
  readonly #queries = new Set<string>();
  /** The last event, without its output. */
  #held: JsonObject | null = null;

  constructor(model: string) {
    this.#model = model;
  }

  get webSearches(): number {
    return this.#queries.size;
  }

  get claim(): JsonObject | null {
    const {
      promptTokenCount: prompt,
      toolUsePromptTokenCount: ofTools = 0,
      candidatesTokenCount: candidateTokens,
    } = this.#usage;
    const { thoughtsTokenCount: thought = 0, cachedContentTokenCount: cached = 0 } = this.#usage;
    if (prompt === undefined && candidateTokens === undefined) return null;
    const [all, completion] = [(prompt ?? 0) + ofTools, (candidateTokens ?? 0) + thought];
    return {
      prompt_tokens: all,
      completion_tokens: completion,
      total_tokens: all + completion,
      prompt_tokens_details: {
        cached_tokens: cached,
        ...this.#details['promptTokensDetails'],
        cached_tokens_details: this.#details['cacheTokensDetails'] ?? {},
      },
      completion_tokens_details: { reasoning_tokens: thought, ...this.#details['candidatesTokensDetails'] },
      ...(this.#queries.size > 0 ? { server_tool_use: { web_search_requests: this.#queries.size } } : {}),
    };
  }

  take(_type: string, chunk: JsonObject, text: string): string | null {
    if (isError(chunk['error'])) throw failedByItsOwnWords(chunk['error']);
    if (!isAnswer(chunk)) {
      if (isHead(chunk)) return null;
      throw malformed('its stream has an event that is no answer');
    }
    const { candidates: listed, ...others } = chunk;
    const event = listed === null ? others : chunk;
    this.takeUsage(event['usageMetadata']);
    this.#takeSearches(event['candidates']);
    const ends = this.#stopped(event);
    if (!ends && this.#held === null)
      return event === chunk
        ? withMembersOf(text, event, null, { modelVersion: this.#model })
        : JSON.stringify({ ...event, modelVersion: this.#model });
    // The reason to stop leaves only after the settlement, in an event of its own. What comes with it or after it does
    // not wait.
    const { candidates, ...rest } = event;
    const ended = ends ? endOf(candidates) : this.#held!['candidates'];
    this.#held = {
      ...this.#held,
      ...rest,
      modelVersion: this.#model,
      ...(ended === undefined ? {} : { candidates: ended }),
      usageMetadata: largerUsage(this.#held?.['usageMetadata'], rest['usageMetadata']),
    };
    if (!hasOutput(event)) return null;
    return JSON.stringify({ ...event, candidates: withoutReason(candidates), modelVersion: this.#model });
  }

  addSize(_type: string, event: JsonObject, size: OutputSize): void {
    addAnswer(event, size);
  }

  opens(_type: string, event: JsonObject): boolean {
    return this.#held === null && !hasOutput(event);
  }

  last(end: NativeEnd): string {
    const held = this.#held ?? { modelVersion: this.#model };
    const candidates = end.isBroken || this.#held === null ? [cutCandidate(end)] : held['candidates'];
    const usageMetadata = this.#shownUsage(held['usageMetadata'], end);
    return `data: ${JSON.stringify({ candidates, ...held, ...(end.isBroken ? { candidates } : {}), usageMetadata })}\n\n`;
  }

  takeWhole(reply: JsonObject, size: OutputSize): void {
    if (!isAnswer(reply)) throw malformed('its reply has no candidates');
    this.takeUsage(reply['usageMetadata']);
    this.#takeSearches(reply['candidates']);
    this.#stopped(reply);
    addAnswer(reply, size);
  }

  whole(text: string, reply: JsonObject, end: NativeEnd): string {
    const usageMetadata = this.#shownUsage(reply['usageMetadata'], end);
    return withMembersOf(text.trim(), reply, null, { modelVersion: this.#model, usageMetadata });
  }

  cutWhole(writtenText: string, end: NativeEnd): string {
    return JSON.stringify({
      candidates: [cutCandidate(end, writtenText)],
      usageMetadata: this.#shownUsage(null, end),
      modelVersion: this.#model,
      ...noteOf(end.cut),
    });
  }

  /** A running total never falls, so a smaller count replaces no larger one. */
  takeUsage(claim: unknown): void {
    const claimedUsage = withCounts(claim);
    if (!isObject(claimedUsage)) return;
    for (const name of COUNTS) {
      const count = claimedUsage[name];
      if (isCount(count) && count >= (this.#usage[name] ?? 0)) this.#usage[name] = count;
    }
    for (const name of DETAILS)
      if (Array.isArray(claimedUsage[name])) this.#details[name] = byModality(claimedUsage[name]);
  }

  #takeSearches(candidates: unknown): void {
    if (!Array.isArray(candidates)) return;
    for (const candidate of candidates as unknown[]) {
      const grounding = isObject(candidate) ? candidate['groundingMetadata'] : null;
      const queries = isObject(grounding) ? grounding['webSearchQueries'] : null;
      if (!Array.isArray(queries)) continue;
      for (const query of queries as unknown[])
        if (typeof query === 'string' && query !== '' && this.#queries.size < QUERIES_MAX) this.#queries.add(query);
    }
  }

  #stopped({ candidates, promptFeedback: feedback }: JsonObject): boolean {
    const [first] = Array.isArray(candidates) ? (candidates as unknown[]) : [];
    const reason = isObject(first) ? first['finishReason'] : isObject(feedback) ? feedback['blockReason'] : null;
    if (typeof reason !== 'string' || reason === '') return false;
    this.finish = reason;
    return true;
  }

  /** The usage that the client sees: the provider's, with the billed numbers in it if these differ. */
  #shownUsage(claimedUsage: unknown, { usage, cost, isCorrected }: NativeEnd): JsonObject {
    const claimMembers = isObject(claimedUsage) ? claimedUsage : {};
    if (!isCorrected && Object.keys(claimMembers).length > 0) return { ...claimMembers, ...cost };
    return { ...claimMembers, ...usageMetadataOf(usage), ...cost };
  }
}

/** More searches than any call is charged for. */
const QUERIES_MAX = 1_000;

const isAnswer = ({ candidates = null, promptFeedback: feedback, usageMetadata: usage }: JsonObject): boolean =>
  Array.isArray(candidates) || (candidates === null && (isObject(feedback) || isObject(usage)));

/** Members of an event that say nothing of the answer. */
const HEAD: ReadonlySet<string> = new Set(['modelVersion', 'responseId', 'createTime']);

/** Whether an event only names the answer that follows, or says nothing. */
const isHead = (event: JsonObject): boolean =>
  Object.keys(event).every((name) => HEAD.has(name) || event[name] === null);

/** Clients do not keep an answer that has an event without parts. */
const contentOf = (text: string) => ({ parts: [{ text }], role: 'model' });

const cutCandidate = ({ cut }: NativeEnd, writtenText = ''): JsonObject => ({
  content: contentOf(writtenText),
  index: 0,
  finishReason: 'MAX_TOKENS',
  ...(cut === null ? {} : { finishMessage: cut.message }),
});

const withoutReason = (candidates: unknown): unknown =>
  Array.isArray(candidates)
    ? (candidates as unknown[]).map((one) => {
        if (!isObject(one)) return one;
        const { finishReason: _reason, finishMessage: _message, ...rest } = one;
        return rest;
      })
    : candidates;

/** The first of the candidates without its output; undefined for none. */
function endOf(candidates: unknown): unknown {
  const [first] = Array.isArray(candidates) ? (candidates as unknown[]) : [];
  if (!isObject(first)) return undefined;
  const { finishReason, finishMessage } = first;
  return [
    { content: contentOf(''), index: 0, finishReason, ...(finishMessage === undefined ? {} : { finishMessage }) },
  ];
}

function hasOutput(event: JsonObject): boolean {
  const size = new OutputSize();
  addAnswer(event, size);
  return !size.isEmpty;
}

function addAnswer({ candidates }: JsonObject, size: OutputSize): void {
  if (!Array.isArray(candidates)) return;
  for (const candidate of candidates as unknown[]) {
    const content = isObject(candidate) ? candidate['content'] : null;
    const parts = isObject(content) ? content['parts'] : null;
    if (Array.isArray(parts)) for (const part of parts as unknown[]) if (isObject(part)) addPart(part, size);
  }
}

/** Results of Google's own tools and files are not text of the model, and signatures are not readable. */
function addPart(part: JsonObject, size: OutputSize): void {
  const { text, functionCall: call, thoughtSignature: signature, inlineData } = part;
  if (isObject(call)) {
    const { name, args } = call;
    size.text(name);
    if (isObject(args) && Object.keys(args).length > 0) size.text(JSON.stringify(args));
    size.frame();
    return size.sealed(signature);
  }
  if (typeof text === 'string') {
    size.text(text);
    return size.sealed(signature);
  }
  size.json(part);
  if (!isObject(inlineData)) return;
  const { mimeType, data } = inlineData;
  if (/^image\//i.test(String(mimeType))) size.pictures++;
  if (/^audio\//i.test(String(mimeType)) && typeof data === 'string') size.soundBytes += bytesOfBase64(data);
}
