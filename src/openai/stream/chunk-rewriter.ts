import { failedByItsOwnWords } from '#wire/replies';
import type { ByteOutput } from './byte-output.ts';
import type { Produced, ReplyContext } from '../reply/chat-end.ts';
import { largerClaim } from '../reply/chat-usage.ts';
import { cutDeltas } from '../caps/output-bound.ts';
import { createKnownForms } from './known-forms.ts';
import { roomOf, type OutputTally } from './output-tally.ts';
import { choicesOf, failByName, parseChunk } from './parse-chunk.ts';
import { createStreamedChoices } from './streamed-choices.ts';

type Json = Record<string, unknown>;

/** Rewrites a provider's events as ours. */
interface ChunkRewriter {
  /** Chunks that had a choice. */
  readonly chunks: number;
  /** The provider sent `[DONE]`. */
  readonly done: boolean;
  /** A chunk that finishes a choice is held until the usage is known. */
  readonly finishHeld: boolean;
  /** The output ran past its budget. Nothing is read after that. */
  readonly overCap: boolean;
  /**
   * Rewrites the payload of one event and writes it to the output. `refused`: `rewriteKnown` did not take this
   * event. `isError`: the provider names it an error. Returns false after the last event.
   */
  rewrite(bytes: Buffer, start: number, end: number, refused: boolean, isError: boolean): boolean;
  /**
   * Rewrites the events on the wire that begin with the payload at `start`, as long as they have a known form.
   * Returns the place after them, or `start` if it took no event.
   */
  rewriteKnown(bytes: Buffer, start: number, end: number): number;
  /** The reply so far. `finish` is the reason for a choice that the provider has not finished. */
  produced(finish: 'length' | 'stop'): Produced;
}

/** `parseAll`: every event is parsed, as a reference for the fast path. */
export function createChunkRewriter(
  context: ReplyContext,
  tally: OutputTally,
  output: ByteOutput,
  parseAll: boolean,
): ChunkRewriter {
  const stamp = createStamp(context);
  const choicesRead = createStreamedChoices(context.callId, tally);
  const forms = createKnownForms(tally, output);
  /** Chunks with a choice that were parsed. */
  let parsed = 0;
  let claim: unknown = null;
  let held: Json | null = null;
  let done = false;
  let overCap = false;

  /** Returns false when the output ran past its budget. */
  function take(text: string, chunk: Json): boolean {
    if (chunk['error']) throw failedByItsOwnWords(chunk['error']);
    // vLLM puts its error in the place of a chunk.
    if (chunk['object'] === 'error') throw failedByItsOwnWords(chunk);
    const claims = takeClaim(chunk);
    const choices = choicesOf(chunk);
    if (!choices) return true;
    stamp(chunk);
    if (choices.length === 0) {
      if (held) copyMissing(chunk, held);
      else if (!claims) write(chunk);
      return true;
    }
    parsed++;
    const room = roomOf(tally);
    const { finishes, opensCall } = choicesRead.read(chunk, choices);
    // A new call changes what an index stands for.
    if (opensCall) forms.forget();
    if (roomOf(tally) < 0) {
      writeWordsThatFit(chunk, room);
      overCap = true;
      return false;
    }
    if (finishes) {
      if (held) write(held);
      held = chunk;
      return true;
    }
    write(chunk);
    if (!parseAll && !claims && !opensCall) forms.learn(text, chunk);
    return true;
  }

  /** The claim is removed from the chunk, because only the last chunk carries usage. */
  function takeClaim(chunk: Json): boolean {
    const given = chunk['usage'];
    if (given !== undefined) chunk['usage'] = undefined;
    if (given === undefined || given === null) return false;
    claim = largerClaim(claim, given);
    return true;
  }

  function write(chunk: Json): void {
    output.writeText(`data: ${JSON.stringify(chunk)}\n\n`);
  }

  function writeWordsThatFit({ id, object, created, model, provider, choices }: Json, room: number): void {
    const fitting = cutDeltas(choices as Json[], room);
    if (fitting.length > 0) write({ id, object, created, model, provider, choices: fitting });
  }

  /** The finishing chunk for a stream that ended without one. */
  function madeUpFinish(reason: string): Json {
    const chunk: Json = { choices: [{ index: 0, delta: {}, finish_reason: reason }] };
    stamp(chunk);
    return chunk;
  }

  return {
    get chunks() {
      return parsed + forms.events;
    },
    get done() {
      return done;
    },
    get finishHeld() {
      return held !== null;
    },
    get overCap() {
      return overCap;
    },
    rewrite(bytes, start, end, refused, isError) {
      if (isError) failByName(bytes.subarray(start, end), bytes.toString('utf8', start, end));
      if (!refused && forms.take(bytes, start, end, false) === end) return true;
      const text = bytes.toString('utf8', start, end);
      if (bytes[start] === 0x5b && text.trim() === '[DONE]') {
        done = true;
        return false;
      }
      return take(text, parseChunk(bytes.subarray(start, end), text));
    },
    rewriteKnown: (bytes, start, end) => forms.take(bytes, start, end, true),
    produced(finish) {
      const body = held ?? madeUpFinish(overCap || tally.bytes > 0 ? finish : 'error');
      return {
        body,
        before: output.take(),
        claim,
        outputBytes: tally.bytes,
        otherBytes: tally.otherBytes,
        finishReasons: [...choicesRead.finishReasons.values()],
        choices: Math.max(1, choicesRead.count),
        malformed: !held && !overCap,
        overCap,
      };
    },
  };
}

function copyMissing(from: Json, to: Json): void {
  for (const key of Object.keys(from)) if (!(key in to)) to[key] = from[key];
}

/** Sets the members that are the same in all chunks of a stream. */
function createStamp({ callId, service, provider, created: fallback }: ReplyContext): (chunk: Json) => void {
  let created: number | null = null;
  return (chunk) => {
    chunk['id'] = callId;
    chunk['object'] = 'chat.completion.chunk';
    if (typeof chunk['created'] !== 'number') chunk['created'] = created ?? fallback;
    created ??= chunk['created'] as number;
    chunk['model'] = service;
    chunk['provider'] = provider;
    // By the published schema of chunks it is a string or absent. Only a whole reply has null.
    if (chunk['system_fingerprint'] === null) chunk['system_fingerprint'] = undefined;
  };
}
