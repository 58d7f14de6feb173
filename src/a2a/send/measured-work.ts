import { heldAgainst, readReportedUsage, type MeasuredWork } from '#gateway';
import { askOfTask, type AskOfTask } from '../agent/ask-of-task.ts';
import type { PricedByUse } from './ending.ts';
import type { A2aEvent } from '../wire/read-result.ts';
import { isTerminal } from '../wire/task-state.ts';

/** Measures the work of one message, for an agent that is paid by what it reports; of others nothing is counted. */
export interface Measuring {
  /** Counts what the agent said. */
  hear(text: string): void;
  /** Bytes that were heard so far. */
  readonly bytes: number;
  /** The work until now, with so many bytes for its output; default those that were heard. */
  work(bytesOut?: number): MeasuredWork;
}

export function measureWork({ priceCap }: Pick<PricedByUse, 'priceCap'>, messageText: string): Measuring {
  const beganAt = performance.now();
  let bytes = 0;
  return {
    hear(text) {
      if (priceCap !== null) bytes += Buffer.byteLength(text);
    },
    get bytes() {
      return bytes;
    },
    work: (bytesOut = bytes) => ({
      elapsedMs: performance.now() - beganAt,
      bytesIn: priceCap === null ? 0 : Buffer.byteLength(messageText),
      bytesOut,
    }),
  };
}

/**
 * Bytes of output that the end of a task is held against. Where those that were heard with it do not explain its
 * claim, `shown` is asked for those of the whole task: the end may be a bare status, after output that somebody
 * else has heard, or a task without the history that has its output.
 */
export async function bytesBehind(
  offer: PricedByUse,
  event: A2aEvent,
  heard: number,
  shown: () => Promise<number>,
): Promise<number> {
  if (offer.priceCap === null || !isTerminal(event.state)) return heard;
  const work: MeasuredWork = { elapsedMs: Number.MAX_SAFE_INTEGER, bytesIn: 0, bytesOut: heard };
  const { flags } = heldAgainst(readReportedUsage(event.usage), offer, work);
  if (!flags.includes('usage_implausible')) return heard;
  const whole = await shown().catch(() => 0);
  return event.kind === 'task' ? Math.max(heard, whole) : heard + whole;
}

/** Bytes of a task as its agent shows it; 0 where it does not. Rejects with UpstreamFailure. */
export async function bytesOfTask(ask: AskOfTask): Promise<number> {
  const shown = await askOfTask(ask, 'get', SHOW_MS);
  return shown.kind === 'task' ? Buffer.byteLength(JSON.stringify(shown.value)) : 0;
}

/** The end of the answer waits for it. */
const SHOW_MS = 3_000;
