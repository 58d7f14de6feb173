import { outputBytesMax } from '../caps/output-bound.ts';
import type { ChatBudget } from '../caps/chat-budget.ts';

/** Bytes that a stream has said so far, counted against its budget. */
export interface OutputTally {
  /** The most that `bytes` without `discount` may be. */
  readonly bytesMax: number;
  /** Bytes of text. */
  bytes: number;
  /** Runs are long tokens: so many of `bytes` do not count towards the maximum. */
  discount: number;
  /** Bytes of output that is not text. */
  otherBytes: number;
}

export function createOutputTally(budget: ChatBudget): OutputTally {
  return { bytesMax: outputBytesMax(budget), bytes: 0, discount: 0, otherBytes: 0 };
}

/** Bytes that may still be said; negative when the output ran past its budget. */
export const roomOf = (tally: OutputTally): number => tally.bytesMax - (tally.bytes - tally.discount);
