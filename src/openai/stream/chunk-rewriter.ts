import { failedByItsOwnWords, failedInChoice, isError, malformed } from '#wire/replies';
import { KnownForms } from './chunk-forms.ts';
import type { ChunkOutput } from './chunk-output.ts';
import type { ChatPiece, Produced, ReplyContext } from '../chat/reply/chat-end.ts';
import { type FinishReason, finishReasonOf, setFinishReason } from '../chat/reply/finish-reason.ts';
import { largerClaim, withCounts } from '../chat/reply/chat-usage.ts';
import {
  addMedia,
  cutDeltas,
  roomOf,
  type OutputCounter,
  otherBytes,
  textBytes,
  textsOf,
  runDiscountOf,
} from '../chat/reply/output-bound.ts';
import { withoutList } from '../chat/request/content-lists.ts';
import { parseChunk } from './event-stream-reader.ts';
import { createdIn } from '../chat/reply/whole-reply.ts';
import { createToolCallDeltas } from '../chat/reply/tool-call-deltas.ts';

export class ChunkRewriter {
  /** The provider sent `[DONE]`. */
  done = false;
  /** The output ran past its budget. Nothing is read after that. */
  overCap = false;
  readonly #context: ReplyContext;
  readonly #counter: OutputCounter;
  readonly #output: ChunkOutput<ChatPiece>;
  readonly #parseAll: boolean;
  readonly #choices: StreamedChoices;
  readonly #forms: KnownForms;
  #parsed = 0;
  #created: number | null = null;
  #claim: unknown = null;
  #serviceTier: unknown = undefined;
  #held: Record<string, unknown> | null = null;
  /** Members of chunks without a choice, for the next chunk: clients read the first choice of each. */
  #waiting: Record<string, unknown> | null = null;

  /** `parseAll`: every event is parsed, as a reference for the fast path. */
  constructor(context: ReplyContext, counter: OutputCounter, output: ChunkOutput<ChatPiece>, parseAll: boolean) {
    this.#context = context;
    this.#counter = counter;
    this.#output = output;
    this.#parseAll = parseAll;
    this.#choices = new StreamedChoices(context, counter);
    this.#forms = new KnownForms(counter, output);
  }

  get chunks(): number {
    return this.#parsed + this.#forms.events;
  }

  /** A chunk came that says more than whose turn it is. */
  hasContent = false;

  /** A chunk that finishes a choice is held until the usage is known. */
  get finishHeld(): boolean {
    return this.#held !== null;
  }

  /** Rewrites the event with this data, and writes it to the output. Returns false after the last event. */
  rewrite(bytes: Buffer, start: number, end: number): boolean {
    const text = bytes.toString('utf8', start, end);
    if (bytes[start] === 0x5b && text.trim() === '[DONE]') {
      this.done = true;
      return false;
    }
    return this.#take(text, parseChunk(bytes.subarray(start, end), text));
  }

  rewriteKnown(bytes: Buffer, start: number, end: number, framed: boolean): number {
    return this.#forms.take(bytes, start, end, framed);
  }

  /** The reply so far. `finish` is the reason for a choice that the provider has not finished. */
  produced(finish: 'length' | 'stop'): Produced {
    const { bytes, otherBytes, pictures, soundBytes } = this.#counter;
    const body = this.#held ?? this.#madeUpFinish(this.overCap || bytes > 0 ? finish : 'error');
    this.#addWaiting(body);
    this.#output.last(body);
    return {
      body,
      before: this.#output.take(),
      claim: this.#claim,
      serviceTier: this.#serviceTier,
      outputBytes: bytes,
      otherBytes,
      pictures,
      soundBytes,
      finishReasons: [...this.#choices.finishReasons.values()],
      choices: Math.max(1, this.#choices.count),
      malformed: this.#held === null && !this.overCap,
      overCap: this.overCap,
    };
  }

  /** Returns false when the output ran past its budget. */
  #take(text: string, chunk: Record<string, unknown>): boolean {
    if (chunk['error'] !== undefined) {
      if (isError(chunk['error'])) throw failedByItsOwnWords(chunk['error']);
      chunk['error'] = undefined;
    }
    // vLLM puts its error in the place of a chunk.
    if (chunk['object'] === 'error') throw failedByItsOwnWords(chunk);
    const claims = this.#takeClaimOf(chunk);
    this.#serviceTier = chunk['service_tier'] ?? this.#serviceTier;
    const choices = choicesOf(chunk);
    if (!choices) return true;
    this.#stamp(chunk);
    if (choices.length === 0) {
      if (this.#held) copyMissing(chunk, this.#held);
      else if (!claims) copyMissing(chunk, (this.#waiting ??= {}));
      return true;
    }
    this.#parsed++;
    this.#addWaiting(chunk);
    const room = roomOf(this.#counter);
    const { finishes, isNew } = this.#choices.read(chunk, choices);
    this.#context.continuation?.hear(choices);
    this.hasContent ||= finishes || !choices.every(opens);
    // A new call changes what an index stands for.
    if (isNew) this.#forms.forget();
    if (roomOf(this.#counter) < 0) {
      this.#writeWordsThatFit(chunk, room);
      this.overCap = true;
      return false;
    }
    if (finishes) {
      if (this.#held) this.#write(this.#held);
      this.#held = chunk;
      return true;
    }
    this.#write(chunk);
    if (!this.#parseAll && !claims && !isNew) this.#forms.learn(text, chunk);
    return true;
  }

  /** The claim is removed from the chunk, because only the last chunk carries usage. */
  #takeClaimOf(chunk: Record<string, unknown>): boolean {
    const claimedUsage = chunk['usage'];
    if (claimedUsage !== undefined) chunk['usage'] = undefined;
    if (claimedUsage === undefined || claimedUsage === null) return false;
    this.takeClaim(claimedUsage);
    return true;
  }

  /** A usage that the provider reports; null for none. */
  takeClaim(claimedUsage: unknown): void {
    if (claimedUsage !== null) this.#claim = largerClaim(this.#claim, withCounts(claimedUsage));
  }

  #addWaiting(chunk: Record<string, unknown>): void {
    if (this.#waiting !== null) copyMissing(this.#waiting, chunk);
    this.#waiting = null;
  }

  #write(chunk: Record<string, unknown>): void {
    this.#output.chunk(chunk);
  }

  #writeWordsThatFit({ id, object, created, model, provider, choices }: Record<string, unknown>, room: number): void {
    const fitting = cutDeltas(choices as Record<string, unknown>[], room);
    if (fitting.length > 0) this.#write({ id, object, created, model, provider, choices: fitting });
  }

  /** The finishing chunk for a stream that ended without one. */
  #madeUpFinish(reason: string): Record<string, unknown> {
    const chunk: Record<string, unknown> = { choices: [{ index: 0, delta: {}, finish_reason: reason }] };
    this.#stamp(chunk);
    return chunk;
  }

  #stamp(chunk: Record<string, unknown>): void {
    const { callId, created: fallback, service, provider } = this.#context;
    chunk['id'] = callId;
    chunk['object'] = 'chat.completion.chunk';
    this.#created ??= createdIn(chunk, fallback);
    chunk['created'] = createdIn(chunk, this.#created);
    chunk['model'] = service;
    chunk['provider'] = provider;
    // By the published schema of chunks it is a string or absent. Only a whole reply has null.
    if (chunk['system_fingerprint'] === null) chunk['system_fingerprint'] = undefined;
  }
}

/** The choices of a chunk; empty if it has only usage; null for an event that is not a chunk. */
function choicesOf(chunk: Record<string, unknown>): readonly Record<string, unknown>[] | null {
  const { choices } = chunk;
  if (!Array.isArray(choices)) return null;
  if (choices.some((choice) => typeof choice !== 'object' || choice === null))
    throw malformed('its stream has a choice that is no object');
  return choices as readonly Record<string, unknown>[];
}

/** Whether a choice has nothing but the role and empty members. */
function opens({ delta }: Record<string, unknown>): boolean {
  for (const [key, value] of Object.entries(delta as Record<string, unknown>))
    if (key !== 'role' && value && !(Array.isArray(value) && value.length === 0)) return false;
  return true;
}

function copyMissing(from: Record<string, unknown>, to: Record<string, unknown>): void {
  for (const key of Object.keys(from)) if (!(key in to)) to[key] = from[key];
}

interface ReadChoices {
  readonly finishes: boolean;
  /**
   * The chunk has the first delta of a choice, whose role was missing, or of a tool call, or a part of a call whose
   * name is not known yet.
   */
  readonly isNew: boolean;
}

/** The choices of one stream, from chunk to chunk. */
class StreamedChoices {
  readonly #finishReasons = new Map<number, FinishReason>();
  readonly #seen = new Set<number>();
  readonly #toolCalls: ReturnType<typeof createToolCallDeltas>;
  readonly #context: Pick<ReplyContext, 'callId' | 'service'>;
  readonly #counter: OutputCounter;

  constructor(context: Pick<ReplyContext, 'callId' | 'service'>, counter: OutputCounter) {
    this.#toolCalls = createToolCallDeltas(context.callId);
    this.#context = context;
    this.#counter = counter;
  }

  /** By the index of the choice. */
  get finishReasons(): ReadonlyMap<number, FinishReason> {
    return this.#finishReasons;
  }

  get count(): number {
    return this.#seen.size;
  }

  /** Normalises the choices of `chunk` in place and counts their output. */
  read(chunk: Record<string, unknown>, choices: readonly Record<string, unknown>[]): ReadChoices {
    let finishes = false;
    let isNew = false;
    // Some providers put the finish reason beside the choices.
    const beside = chunk['finish_reason'];
    if (beside !== undefined) chunk['finish_reason'] = undefined;
    choices.forEach((choice, position) => {
      if (typeof choice['index'] !== 'number') choice['index'] = position;
      const index = choice['index'] as number;
      const begins = !this.#seen.has(index);
      if (begins) this.#seen.add(index);
      // Of several choices, the others may be whole.
      if (this.#seen.size === 1 && isError(choice['error'])) throw failedInChoice(choice['error']);
      if (typeof choice['delta'] !== 'object' || choice['delta'] === null) choice['delta'] = {};
      const delta = choice['delta'] as Record<string, unknown>;
      withoutList(delta, this.#context.service);
      if (begins) {
        isNew ||= delta['role'] !== 'assistant';
        delta['role'] = 'assistant';
      } else if (delta['role'] !== undefined && delta['role'] !== 'assistant') delta['role'] = undefined;
      const word = choice['finish_reason'] || beside;
      const reason = this.#finishReasons.has(index) ? null : finishReasonOf(word);
      const ends = reason !== null;
      if (this.#takeCalls(index, delta, ends)) isNew = true;
      this.#counter.bytes += textBytes(delta);
      this.#counter.discount += runDiscountOf(textsOf(delta));
      this.#counter.otherBytes += otherBytes(delta);
      addMedia(delta, this.#counter);
      if (ends) {
        this.#finishReasons.set(index, reason);
        setFinishReason(choice, reason, word);
        finishes = true;
      } else choice['finish_reason'] = null;
    });
    return { finishes, isNew };
  }

  /** Normalises the tool calls of a delta in place. Returns whether one of them is new, or waits for its name. */
  #takeCalls(index: number, delta: Record<string, unknown>, ends: boolean): boolean {
    const callDeltas = delta['tool_calls'];
    const deltas = Array.isArray(callDeltas) ? (callDeltas as unknown[]) : NONE;
    if (deltas === NONE && !ends) return false;
    const { calls, isOpened } = this.#toolCalls.normalise(index, deltas, ends);
    if (deltas !== NONE || calls.length > 0) delta['tool_calls'] = calls.length > 0 ? calls : undefined;
    return isOpened;
  }
}

const NONE: readonly unknown[] = [];
