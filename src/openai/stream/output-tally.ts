import { outputBytesMax } from '../caps/output-bound.ts';
import type { ChatBudget } from '../caps/chat-budget.ts';

/** The output of a stream so far, which is compared with its budget. */
export interface OutputTally {
  /** The maximum of `bytes` minus `discount`. */
  readonly bytesMax: number;
  /** Bytes of text. */
  bytes: number;
  /** How many of `bytes` do not count towards the maximum, because runs become long tokens. */
  discount: number;
  /** Bytes of output that is not text. */
  otherBytes: number;
}

export function createOutputTally(budget: ChatBudget): OutputTally {
  return { bytesMax: outputBytesMax(budget), bytes: 0, discount: 0, otherBytes: 0 };
}

/** Bytes of output that are still allowed; negative when the output ran past its budget. */
export const roomOf = (tally: OutputTally): number => tally.bytesMax - (tally.bytes - tally.discount);
