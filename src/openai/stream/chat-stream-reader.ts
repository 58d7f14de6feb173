import { GatewayError, parseJson, tooLarge, TooMuchStructure, UpstreamFailure, type JsonLimits } from '#wire';
import type { ReplyReader } from '#gateway';
import { createByteOutput } from './byte-output.ts';
import { completeEnd, cutEnd, overCapEnd, type Produced, type ReplyContext } from '../reply/chat-end.ts';
import { failedByItsOwnWords, malformed, retryAfterOf, toFailure } from '../reply/chat-failure.ts';
import { createCollector, type Collector } from '../reply/chat-reply-collector.ts';
import { checkHead, contentTypeOf } from '../reply/chat-reply-reader.ts';
import { applyTemplate, learnTemplate, type ChunkTemplate } from './chunk-template.ts';
import { otherBytes, textBytes } from '../reply/message-text.ts';
import { cutDeltas, mayBeRun, NO_RUN_BYTES, outputBytesMax, runDiscount, runDiscountOf } from '../caps/output-bound.ts';
import { partialReply } from '../reply/partial-reply.ts';
import { createSseScanner, SseError } from './sse.ts';
import { createToolCallDeltas } from './tool-call-deltas.ts';
import { asChunk, endHere } from '../reply/whole-reply.ts';
import { endInWorker } from '../reply/whole-reply-elsewhere.ts';

type Json = Record<string, unknown>;

const EVENT_LIMITS: JsonLimits = { jsonDepthMax: 128, jsonKeysMax: 10_000, jsonElementsMax: 100_000, repairText: true };

/**
 * A stream is not kept, so what it takes on the wire is bounded only where nothing is said with it. A token comes
 * with as much as its consumer asks for: 20 log probabilities are 1.6 KB, beside a letter or two.
 */
const WIRE_BYTES_PER_OUTPUT_BYTE = 4096;

const TEMPLATES_MAX = 4;
/** Learning costs about ten times a parse, so forms that keep changing are soon left to the parser. */
const LEARN_CREDIT = 8;
const FAST_EVENTS_PER_CREDIT = 16;

interface Finish {
  readonly chunk: Json;
  readonly indexes: ReadonlySet<number>;
}

export interface StreamReaderOptions {
  /** Parse every chunk, as a reference for the fast path. */
  readonly parseAll?: boolean;
}

/**
 * Reads a streamed reply. Chunks go out as they come, under our id and the service's name; the one that finishes is
 * held, for `end` to hand back with the usage that came with it or after it, so that the last chunk carries both
 * exactly once.
 */
export function createChatStreamReader(context: ReplyContext, options: StreamReaderOptions = {}): ReplyReader {
  const { callId, service, provider, budget } = context;
  const bytesMax = outputBytesMax(budget);
  const output = createByteOutput();
  const toolCalls = createToolCallDeltas(callId);
  const scanner = createSseScanner(onEvent);
  const templates: ChunkTemplate[] = [];
  let learnCredit = LEARN_CREDIT;
  let fastEvents = 0;

  let received = 0;
  let outputBytes = 0;
  /** What the text counts less towards its bound, as it has runs. */
  let discount = 0;
  let unworded = 0;
  let chunks = 0;
  let created: number | null = null;
  let claim: unknown = null;
  let held: Finish | null = null;
  const finishReasons = new Map<number, string>();
  let doneSeen = false;
  let overCap = false;
  let failed = false;
  let retryAfterS: number | undefined;
  /** Set when the provider answers a request for a stream with one JSON object. */
  let whole: Collector | null = null;

  function onEvent(bytes: Buffer, start: number, end: number): boolean {
    for (const template of templates) {
      const at = output.length;
      const count = applyTemplate(template, bytes, start, end, output);
      if (count === -1) continue;
      const less = count > NO_RUN_BYTES ? discountOf(template, bytes, start, end, count) : 0;
      if (outputBytes + count - discount - less > bytesMax) {
        // Parsed below, so that what fits of it goes out.
        output.length = at;
        break;
      }
      chunks++;
      outputBytes += count;
      discount += less;
      if (++fastEvents % FAST_EVENTS_PER_CREDIT === 0 && learnCredit < LEARN_CREDIT) learnCredit++;
      return true;
    }
    const text = bytes.toString('utf8', start, end);
    if (bytes[start] === 0x5b && text.trim() === '[DONE]') {
      doneSeen = true;
      return false;
    }
    return onChunk(text, parseEvent(bytes.subarray(start, end), text));
  }

  function onChunk(text: string, chunk: Json): boolean {
    if (chunk['error']) throw failedByItsOwnWords(chunk['error']);
    const ownClaim = takeClaim(chunk);
    const choices = choicesOf(chunk);
    if (!choices) return true;
    stamp(chunk);
    if (choices.length === 0) {
      if (held) copyMissing(chunk, held.chunk);
      else if (!ownClaim) write(chunk);
      return true;
    }
    chunks++;
    const room = bytesMax - (outputBytes - discount);
    const { finishing, plainToolCalls } = readChoices(chunk, choices as Json[]);
    if (outputBytes - discount > bytesMax) return tooMuchOutput(chunk, room);
    if (finishing.size > 0) {
      if (held) write(held.chunk);
      held = { chunk, indexes: finishing };
      return true;
    }
    write(chunk);
    if (!ownClaim && plainToolCalls) learn(text, chunk);
    return true;
  }

  /**
   * The latest claim counts: some providers report a running total. It is taken out of the chunk, as the last chunk
   * alone carries usage.
   */
  function takeClaim(chunk: Json): boolean {
    const given = chunk['usage'];
    if (given !== undefined) chunk['usage'] = undefined;
    if (given === undefined || given === null) return false;
    claim = given;
    return true;
  }

  function stamp(chunk: Json): void {
    chunk['id'] = callId;
    chunk['object'] = 'chat.completion.chunk';
    if (typeof chunk['created'] !== 'number') chunk['created'] = created ?? context.created;
    created ??= chunk['created'] as number;
    chunk['model'] = service;
    chunk['provider'] = provider;
    // A text or absent, by the published schema of chunks. A whole reply has null.
    if (chunk['system_fingerprint'] === null) chunk['system_fingerprint'] = undefined;
  }

  function readChoices(chunk: Json, choices: Json[]): { finishing: Set<number>; plainToolCalls: boolean } {
    const finishing = new Set<number>();
    let plainToolCalls = true;
    const beside = chunk['finish_reason'];
    if (beside !== undefined) chunk['finish_reason'] = undefined;
    choices.forEach((choice, position) => {
      if (typeof choice['index'] !== 'number') choice['index'] = position;
      const index = choice['index'] as number;
      if (typeof choice['delta'] !== 'object' || choice['delta'] === null) choice['delta'] = {};
      const delta = choice['delta'] as Json;
      if (Array.isArray(delta['tool_calls'])) {
        const { calls, opened } = toolCalls.normalise(index, delta['tool_calls'] as unknown[]);
        delta['tool_calls'] = calls;
        if (opened) {
          // A new call changes what an index stands for.
          templates.length = 0;
          plainToolCalls = false;
        }
      }
      outputBytes += textBytes(delta);
      discount += runDiscountOf(delta);
      unworded += otherBytes(delta);
      const reason = choice['finish_reason'] || beside;
      const finishes = typeof reason === 'string' && reason !== '' && !finishReasons.has(index);
      choice['finish_reason'] = finishes ? reason : null;
      if (finishes) {
        finishReasons.set(index, reason);
        finishing.add(index);
      }
    });
    return { finishing, plainToolCalls };
  }

  function write(chunk: Json): void {
    output.writeText(`data: ${JSON.stringify(chunk)}\n\n`);
  }

  function learn(text: string, chunk: Json): void {
    if (options.parseAll || learnCredit === 0) return;
    const field = varyingField(chunk);
    if (!field) return;
    learnCredit--;
    const template = learnTemplate(text, field.key, field.place, (placeholder) => {
      field.place(chunk, placeholder);
      return JSON.stringify(chunk);
    });
    if (!template) return;
    if (templates.unshift(template) > TEMPLATES_MAX) templates.pop();
  }

  /**
   * `chunk` does not fit into the `room` that the budget leaves. What fits of its words goes out, and nothing after
   * them.
   */
  function tooMuchOutput(chunk: Json, room: number): false {
    const choices = cutDeltas(chunk['choices'] as Json[], room);
    if (choices.length > 0)
      write({
        id: chunk['id'],
        object: chunk['object'],
        created: chunk['created'],
        model: chunk['model'],
        provider,
        choices,
      });
    overCap = true;
    return false;
  }

  /** Runs `read` and turns what is wrong with the stream into an UpstreamFailure. */
  function reading(read: () => void): void {
    try {
      read();
    } catch (error) {
      const failure = error instanceof SseError ? tooLarge(error.message, { cause: error }) : error;
      failed = !(failure instanceof UpstreamFailure && failure.tooLarge);
      throw failure;
    }
  }

  /** `finish`: how the choice ended that the provider has not ended. */
  function produced(finish: 'length' | 'stop'): Produced {
    const last = held ? held.chunk : madeUpFinish(finish);
    return {
      body: last,
      before: output.take(),
      claim,
      outputBytes,
      otherBytes: unworded,
      finishReasons: [...finishReasons.values()],
      choices: Math.max(1, finishReasons.size),
      malformed: !held && !overCap,
      overCap,
    };
  }

  /** The last chunk of a stream that ended without one of its own. */
  function madeUpFinish(finish: 'length' | 'stop'): Json {
    const chunk: Json = {
      choices: [{ index: 0, delta: {}, finish_reason: overCap || outputBytes > 0 ? finish : 'error' }],
    };
    stamp(chunk);
    return chunk;
  }

  return {
    get finished() {
      return doneSeen || overCap;
    },
    head(status, headers) {
      retryAfterS = retryAfterOf(headers['retry-after']);
      checkHead(status, headers);
      if (contentTypeOf(headers).includes('json')) whole = createCollector(context);
    },
    failure: (status, body) => toFailure(status, body, retryAfterS),
    data(chunk, following = 0) {
      if (whole) {
        whole.push(chunk);
        return null;
      }
      if (!doneSeen && !overCap && chunk.byteLength > 0) {
        received += chunk.byteLength;
        const arrived = chunk.byteLength + following;
        output.expected = arrived + (arrived >> 3) + 64;
        const buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        reading(() => scanner.push(buffer));
        if (received > context.replyBytesMax + outputBytes * WIRE_BYTES_PER_OUTPUT_BYTE)
          throw tooLarge(`its stream is longer than ${context.replyBytesMax} bytes beside what it says`);
      }
      return following > 0 ? null : output.take();
    },
    get kept() {
      return whole?.bytes;
    },
    endElsewhere: () => whole && endInWorker(context, whole, 'chunk'),
    end() {
      if (whole) return endHere(context, whole.take(), 'chunk');
      if (!doneSeen && !overCap) reading(() => scanner.end());
      if (overCap) return overCapEnd(context, produced('length'));
      if (chunks === 0) throw malformed('it ended the stream without a reply');
      if (!held && !doneSeen) throw malformed('it ended the stream before the reply was complete');
      return completeEnd(context, produced('stop'));
    },
    cut(cut) {
      if (failed) throw malformed('its stream was broken before it was cut');
      if (whole) return cutEnd(context, asChunk(partialReply(context, whole.take())), cut);
      return overCap ? overCapEnd(context, produced('length')) : cutEnd(context, produced('length'), cut);
    },
  };
}

/** What the text of an event of this form counts less towards its bound. */
function discountOf(
  { givenHead, givenTail }: ChunkTemplate,
  bytes: Buffer,
  start: number,
  end: number,
  count: number,
): number {
  const [from, to] = [start + givenHead.length, end - givenTail.length];
  return mayBeRun(bytes, from, to) ? runDiscount(bytes, from, to, count) : 0;
}

function parseEvent(bytes: Buffer, text: string): Json {
  let parsed: unknown;
  try {
    // Most events are too small to hold a structure that is expensive to build.
    parsed = bytes.length < 4096 ? JSON.parse(text) : parseJson(bytes, EVENT_LIMITS);
  } catch (error) {
    if (error instanceof TooMuchStructure)
      throw tooLarge('its stream has an event with more structure than is read', { cause: error });
    if (error instanceof SyntaxError || error instanceof GatewayError)
      throw malformed('its stream has an event that is not valid JSON', error);
    throw error;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw malformed('its stream has an event that is no JSON object');
  return parsed as Json;
}

/** The choices of a chunk; an empty list where only usage is there; null for an event that is no chunk at all. */
function choicesOf(chunk: Json): readonly unknown[] | null {
  const { choices } = chunk;
  if (!Array.isArray(choices)) return null;
  if (choices.some((choice) => typeof choice !== 'object' || choice === null))
    throw malformed('its stream has a choice that is no object');
  return choices as readonly unknown[];
}

/** The one string of a chunk that is expected to vary in the next one; null where there are several or none. */
function varyingField(chunk: Json): { key: string; place: (chunk: Json, value: string) => void } | null {
  const choices = chunk['choices'] as Json[];
  if (choices.length !== 1) return null;
  const delta = choices[0]!['delta'] as Json;
  const calls = delta['tool_calls'];
  if (calls !== undefined) {
    if (!Array.isArray(calls) || calls.length !== 1 || typeof argumentsOf(delta)?.['arguments'] !== 'string')
      return null;
    if (textBytes({ ...delta, tool_calls: [] }) > 0) return null;
    return { key: 'arguments', place: (target, value) => void (argumentsOf(deltaOf(target))!['arguments'] = value) };
  }
  const keys = ['content', 'reasoning_content', 'reasoning'].filter((key) => typeof delta[key] === 'string');
  const key = keys.length === 1 ? keys[0] : keys.find((name) => delta[name] !== '');
  // Text beside the varying one would not be counted.
  if (key === undefined || textBytes({ ...delta, [key]: '' }) > 0) return null;
  return { key, place: (target, value) => void (deltaOf(target)[key] = value) };
}

const deltaOf = (chunk: Json): Json => (chunk['choices'] as Json[])[0]!['delta'] as Json;
const argumentsOf = (delta: Json): Json | undefined =>
  (delta['tool_calls'] as Json[])[0]?.['function'] as Json | undefined;

function copyMissing(from: Json, to: Json): void {
  for (const key of Object.keys(from)) if (!(key in to)) to[key] = from[key];
}
