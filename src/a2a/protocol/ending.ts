import { type LargeStrings, type MarkedText, UpstreamFailure, lengthOf } from '#wire';
import {
  clampReportedUsage,
  measuredUse,
  ONE_CALL,
  readReportedUsage,
  type MeasuredWork,
  type ReplyEnd,
  type ReportedUsage,
  cutReply,
} from '#call';
import { isImplausible } from '#call/flags';
import { isOwn, type Offer } from '#catalog';
import { readEvent, type A2aEvent, isTerminal } from '../wire/events.ts';
import { translateEvent } from '../wire/translate.ts';
import type { A2aVersion } from '../wire/protocol.ts';

export interface A2aResult {
  /** The result or the last event, as JSON text in the client's version; null if a stream ended without one. */
  readonly text: string | null;
  /** The strings whose marks `text` has. Absent if it has none. */
  readonly large?: LargeStrings | null;
  /** The same after parsing; null if `text` is null. */
  readonly event: A2aEvent | null;
  /** The agent's own error if it refused. */
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } | null;
  /** The reason why a stream broke off although its task goes on; null if it did not. */
  readonly cut: string | null;
}

export interface EventResult extends A2aResult {
  readonly event: A2aEvent;
}

export const NO_RESULT: A2aResult = { text: null, event: null, error: null, cut: null };

/** An event of a stream, as JSON text in the client's version. */
export interface EventText {
  readonly text: string;
  /** The parsed text; undefined if it was translated, and so not parsed. */
  readonly value: unknown;
}

export interface EventTexts {
  readonly events: readonly EventText[];
  /** About the size of their texts: the number of characters. */
  readonly byteLength: number;
}

export const eventTexts = (events: readonly EventText[]): EventTexts => ({
  events,
  byteLength: events.reduce((sum, { text }) => sum + text.length, 0),
});

/** The text of an answer, with the strings whose marks it has. */
export const withLarge = (text: string, large: LargeStrings | null | undefined): string | MarkedText =>
  large ? { text, large } : text;

export const isTooLarge = (error: unknown): error is UpstreamFailure =>
  error instanceof UpstreamFailure && error.tooLarge;

export const FREE = { usage: null, outcome: 'free', estimated: false, flags: [] } as const;

/**
 * The use that is charged for a message: one call. For an agent that is priced by its use, it is the agent's report,
 * checked against `work`. `cut`: the work was stopped, so a report may be missing.
 */
export function usageOf(offer: PricedByUse, reported: unknown, cut: boolean, work: MeasuredWork): ReportedUsage {
  const unreported = reported === undefined || reported === null;
  return offer.priceCap === null || (cut && unreported)
    ? ONE_CALL
    : clampReportedUsage(readReportedUsage(reported), offer, work);
}

/** The part of an offer that decides how a reported use is read. */
export type PricedByUse = Pick<Offer, 'priceCap' | 'endpoint'>;

/**
 * Whether the end of a task is charged if it was canceled: it has given output, or the operator's own agent reports
 * what it has used, and bills that.
 */
export const isOwed = (offer: PricedByUse, { state, output, usage }: A2aEvent): boolean =>
  output || (state === 'canceled' && offer.priceCap !== null && isOwn(offer) && (usage ?? null) !== null);

/**
 * The end of a call after its last event. The call is charged if the agent answered or its task is completed. It is
 * free if the task failed or was rejected, and pending if the task goes on. A canceled task is cut: charged if it is
 * owed (`gave`, see `isOwed`), else free. `later`: the message continued a task, whose use is charged with its first
 * message.
 */
export function toEnd(
  offer: Offer,
  result: EventResult,
  { later, gave, work }: { readonly later: boolean; readonly gave: boolean; readonly work: MeasuredWork },
): ReplyEnd<A2aResult> {
  const { event } = result;
  const finishReason = event.kind === 'message' ? 'message' : event.state;
  if (event.kind !== 'message' && !isTerminal(event.state))
    return { ...FREE, outcome: 'pending', finishReason, result };
  const cut = event.state === 'canceled' && gave;
  if (event.kind !== 'message' && event.state !== 'completed' && !cut) return { ...FREE, finishReason, result };
  const { usage, flags } = later ? ONE_CALL : usageOf(offer, event.usage, cut, work);
  return { usage, flags, outcome: cut ? 'cut' : 'complete', estimated: false, finishReason, result };
}

/**
 * The end of a call whose answer is larger than the gateway accepts, when no task of the call is known yet. The agent
 * did its work, and the client may have asked for such an answer. So the call is charged by what was measured, and the
 * client gets a message in place of the answer.
 */
export function tooLargeEnd(
  { priceCap }: Offer,
  version: A2aVersion,
  { callId, contextId, later }: { readonly callId: string; readonly contextId: string | null; readonly later: boolean },
  failure: UpstreamFailure,
  durationMs: number,
): ReplyEnd<A2aResult> {
  const why = `The agent's answer is charged but cannot be delivered, because ${failure.message}. Ask for a smaller answer`;
  const message = {
    messageId: callId,
    ...(contextId === null ? {} : { contextId }),
    role: 'ROLE_AGENT',
    parts: [{ text: why }],
    metadata: { 'tollgate/cut': why },
  };
  const event = readEvent('1.0', { message });
  return {
    usage: later ? { call: 1n } : measuredUse(failure, durationMs),
    outcome: 'cut',
    estimated: priceCap !== null && !later,
    finishReason: 'too_large',
    flags: [],
    cut: cutReply({ reason: 'too_large', message: failure.message }, 'nothing'),
    result: { ...NO_RESULT, text: JSON.stringify(translateEvent('1.0', version, { message })), event },
  };
}

/** The agent refused: nothing is charged. */
export const refusedEnd = (error: NonNullable<A2aResult['error']>): ReplyEnd<A2aResult> => ({
  ...FREE,
  finishReason: `error ${error.code}`,
  result: { ...NO_RESULT, error },
});

/** The end of a stream whose task goes on. `cut`: see A2aResult. */
export const pendingEnd = (cut: string | null): ReplyEnd<A2aResult> => ({
  ...FREE,
  outcome: 'pending',
  finishReason: null,
  result: { ...NO_RESULT, cut },
});

/** Measures the work of one message, for an agent that is priced by its use. For other agents no bytes are counted. */
export interface Measuring {
  hear(part: { readonly text: string; readonly large: LargeStrings | null }): void;
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
 * explain the report, `shownBytes` gives the bytes of the whole task. There are two reasons for that: the last event
 * may be a bare status after output that another request received, or a task without the history that holds its output.
 */
export async function bytesBehind(
  offer: PricedByUse,
  event: A2aEvent,
  receivedBytes: number,
  shownBytes: () => Promise<number>,
): Promise<number> {
  if (offer.priceCap === null || !isTerminal(event.state)) return receivedBytes;
  const work: MeasuredWork = { elapsedMs: Number.MAX_SAFE_INTEGER, bytesIn: 0, bytesOut: receivedBytes };
  const { flags } = clampReportedUsage(readReportedUsage(event.usage), offer, work);
  if (!isImplausible(flags)) return receivedBytes;
  const whole = await shownBytes().catch(() => 0);
  return event.kind === 'task' ? Math.max(receivedBytes, whole) : receivedBytes + whole;
}
