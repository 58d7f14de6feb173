import { otherBytes, textBytes, textsOf } from '../reply/message-text.ts';
import { runDiscountOf } from '../caps/output-bound.ts';
import type { OutputTally } from './output-tally.ts';
import { createToolCallDeltas } from './tool-call-deltas.ts';

type Json = Record<string, unknown>;

/** The choices of one stream, from chunk to chunk. */
interface StreamedChoices {
  /** By the index of the choice. */
  readonly finishReasons: ReadonlyMap<number, string>;
  /** How many choices the stream has, finished or not. */
  readonly count: number;
  /** Normalises the choices of `chunk` in place and counts their output. */
  read(chunk: Json, choices: readonly Json[]): ReadChoices;
}

interface ReadChoices {
  /** The chunk finishes a choice. */
  readonly finishes: boolean;
  /** The chunk has the first delta of a tool call. */
  readonly opensCall: boolean;
}

export function createStreamedChoices(callId: string, tally: OutputTally): StreamedChoices {
  const toolCalls = createToolCallDeltas(callId);
  const finishReasons = new Map<number, string>();
  const seen = new Set<number>();

  return {
    finishReasons,
    get count() {
      return seen.size;
    },
    read(chunk, choices) {
      let finishes = false;
      let opensCall = false;
      // Some providers put the finish reason beside the choices.
      const beside = chunk['finish_reason'];
      if (beside !== undefined) chunk['finish_reason'] = undefined;
      choices.forEach((choice, position) => {
        if (typeof choice['index'] !== 'number') choice['index'] = position;
        const index = choice['index'] as number;
        seen.add(index);
        if (typeof choice['delta'] !== 'object' || choice['delta'] === null) choice['delta'] = {};
        const delta = choice['delta'] as Json;
        if (Array.isArray(delta['tool_calls'])) {
          const { calls, opened } = toolCalls.normalise(index, delta['tool_calls'] as unknown[]);
          delta['tool_calls'] = calls;
          opensCall ||= opened;
        }
        tally.bytes += textBytes(delta);
        tally.discount += runDiscountOf(textsOf(delta));
        tally.otherBytes += otherBytes(delta);
        const reason = choice['finish_reason'] || beside;
        if (typeof reason === 'string' && reason !== '' && !finishReasons.has(index)) {
          finishReasons.set(index, reason);
          choice['finish_reason'] = reason;
          finishes = true;
        } else choice['finish_reason'] = null;
      });
      return { finishes, opensCall };
    },
  };
}
