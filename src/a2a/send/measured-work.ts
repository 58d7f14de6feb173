import { lengthOf } from '#wire';
import { clampReportedUsage, readReportedUsage, type MeasuredWork } from '#gateway';
import type { AgentResult } from '../agent/agent-reply.ts';
import { askOfTask, type AskOfTask } from '../agent/ask-of-task.ts';
import type { PricedByUse } from './ending.ts';
import { type A2aEvent, isTerminal } from '../wire/events.ts';

/** Measures the work of one message, for an agent that is priced by its use. For other agents no bytes are counted. */
export interface Measuring {
  /** Counts the bytes of an event of the agent. */
  hear(said: Pick<AgentResult, 'text' | 'large'>): void;
  /** Bytes received so far. */
  readonly bytes: number;
  /** The work so far. `bytesOut`: bytes of output, by default those received. */
  work(bytesOut?: number): MeasuredWork;
}

export function measureWork({ priceCap }: Pick<PricedByUse, 'priceCap'>, messageText: string): Measuring {
  const beganAt = performance.now();
  const measuring: Measuring & { bytes: number } = {
    bytes: 0,
    hear({ text, large }) {
      if (priceCap === null) return;
      measuring.bytes += large === null ? Buffer.byteLength(text) : lengthOf(large.piecesOf(text));
    },
    work: (bytesOut = measuring.bytes) => ({
      elapsedMs: performance.now() - beganAt,
      bytesIn: priceCap === null ? 0 : Buffer.byteLength(messageText),
      bytesOut,
    }),
  };
  return measuring;
}

/**
 * The bytes of output against which the reported use of a finished task is checked. If the received bytes do not
 * explain the report, `shown` gives the bytes of the whole task. There are two reasons for that: the last event may be
 * a bare status after output that another request received, or a task without the history that holds its output.
 */
export async function bytesBehind(
  offer: PricedByUse,
  event: A2aEvent,
  heard: number,
  shown: () => Promise<number>,
): Promise<number> {
  if (offer.priceCap === null || !isTerminal(event.state)) return heard;
  const work: MeasuredWork = { elapsedMs: Number.MAX_SAFE_INTEGER, bytesIn: 0, bytesOut: heard };
  const { flags } = clampReportedUsage(readReportedUsage(event.usage), offer, work);
  if (!flags.includes('usage_implausible')) return heard;
  const whole = await shown().catch(() => 0);
  return event.kind === 'task' ? Math.max(heard, whole) : heard + whole;
}

/** Bytes of a task as its agent shows it; 0 if the agent does not show it. Rejects with UpstreamFailure. */
export async function bytesOfTask(ask: AskOfTask): Promise<number> {
  const shown = await askOfTask(ask, 'get', SHOW_MS);
  return shown.kind === 'task' ? Buffer.byteLength(JSON.stringify(shown.value)) : 0;
}

/** Short, because the end of the answer waits for this request. */
const SHOW_MS = 3_000;
