import { outputBytesMax } from '../caps/output-bound.ts';
import type { ChatBudget } from '../caps/chat-budget.ts';

/** The output of a stream so far, which is compared with its budget. */
export interface OutputCounter {
  /** The maximum of `bytes` minus `discount`. */
  readonly bytesMax: number;
  /** Bytes of text. */
  bytes: number;
  /** How many of `bytes` do not count towards the maximum, because runs become long tokens. */
  discount: number;
  /** Bytes of output that is not text. */
  otherBytes: number;
}

export function createOutputCounter(budget: ChatBudget): OutputCounter {
  return { bytesMax: outputBytesMax(budget), bytes: 0, discount: 0, otherBytes: 0 };
}

/** Bytes of output that are still allowed; negative when the output ran past its budget. */
export const roomOf = (counter: OutputCounter): number => counter.bytesMax - (counter.bytes - counter.discount);
