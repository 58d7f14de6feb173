import { otherBytes, textBytes, textsOf, runDiscountOf, type OutputCounter } from '../chat/output-bound.ts';
import { createToolCallDeltas } from './tool-call-deltas.ts';

type Json = Record<string, unknown>;

interface ReadChoices {
  /** The chunk finishes a choice. */
  readonly finishes: boolean;
  /** The chunk has the first delta of a tool call, or a part of a call whose name is not known yet. */
  readonly opensCall: boolean;
}

/** The choices of one stream, from chunk to chunk. */
export class StreamedChoices {
  readonly #finishReasons = new Map<number, string>();
  readonly #seen = new Set<number>();
  readonly #toolCalls: ReturnType<typeof createToolCallDeltas>;
  readonly #counter: OutputCounter;

  constructor(callId: string, counter: OutputCounter) {
    this.#toolCalls = createToolCallDeltas(callId);
    this.#counter = counter;
  }

  /** By the index of the choice. */
  get finishReasons(): ReadonlyMap<number, string> {
    return this.#finishReasons;
  }

  /** How many choices the stream has, finished or not. */
  get count(): number {
    return this.#seen.size;
  }

  /** Normalises the choices of `chunk` in place and counts their output. */
  read(chunk: Json, choices: readonly Json[]): ReadChoices {
    let finishes = false;
    let opensCall = false;
    // Some providers put the finish reason beside the choices.
    const beside = chunk['finish_reason'];
    if (beside !== undefined) chunk['finish_reason'] = undefined;
    choices.forEach((choice, position) => {
      if (typeof choice['index'] !== 'number') choice['index'] = position;
      const index = choice['index'] as number;
      this.#seen.add(index);
      if (typeof choice['delta'] !== 'object' || choice['delta'] === null) choice['delta'] = {};
      const delta = choice['delta'] as Json;
      const reason = choice['finish_reason'] || beside;
      const ends = typeof reason === 'string' && reason !== '' && !this.#finishReasons.has(index);
      if (this.#takeCalls(index, delta, ends)) opensCall = true;
      this.#counter.bytes += textBytes(delta);
      this.#counter.discount += runDiscountOf(textsOf(delta));
      this.#counter.otherBytes += otherBytes(delta);
      if (ends) {
        this.#finishReasons.set(index, reason);
        choice['finish_reason'] = reason;
        finishes = true;
      } else choice['finish_reason'] = null;
    });
    return { finishes, opensCall };
  }

  /** Normalises the tool calls of a delta in place. Returns whether one of them is new, or waits for its name. */
  #takeCalls(index: number, delta: Json, ends: boolean): boolean {
    const given = delta['tool_calls'];
    const deltas = Array.isArray(given) ? (given as unknown[]) : NONE;
    if (deltas === NONE && !ends) return false;
    const { calls, opened } = this.#toolCalls.normalise(index, deltas, ends);
    if (deltas !== NONE || calls.length > 0) delta['tool_calls'] = calls.length > 0 ? calls : undefined;
    return opened;
  }
}

const NONE: readonly unknown[] = [];
