import { GatewayError } from '#wire';
import type { Cut, ReplyEnd } from '#gateway';
import { type ChatTail, costOfParts, type ReplyContext } from '../chat/chat-end.ts';
import { type ChatUsage, cutUsage, measureUsage, type Output, readUsage } from '../chat/chat-usage.ts';
import type { NativeEnd, NativeSpeech } from './native-speech.ts';

/** A native reply as far as it was read. */
export interface NativeProduced extends Output {
  readonly speech: NativeSpeech;
  /** Bytes that go out before the end. */
  readonly before: Uint8Array | null;
  /** Writes the end. */
  readonly write: (end: NativeEnd) => string;
}

/** The end of a complete reply. It is free if the provider sent neither output nor a finish reason. */
export function nativeEnd(context: ReplyContext, produced: NativeProduced): ReplyEnd {
  const { speech, outputBytes, otherBytes } = produced;
  const isNothing = speech.finish === null && outputBytes + otherBytes === 0;
  return toEnd(context, produced, readUsage(speech.claim, context, produced), {
    outcome: isNothing ? 'free' : 'complete',
  });
}

/** The end of a reply that was cut. It is charged by the provider's claim, else by what the gateway counted. */
export function nativeCut(context: ReplyContext, produced: NativeProduced, { reason, message }: Cut): ReplyEnd {
  const usage = cutUsage(produced.speech.claim, context, produced, reason === 'cancelled');
  const cut = new GatewayError('reply_cut', `The reply was cut: ${message}. The part that arrived is charged`);
  const outcome = usage.usage === null ? 'free' : 'cut';
  const end = toEnd(context, produced, usage, { outcome, estimated: usage.estimated, isBroken: true });
  return { ...end, finishReason: end.finishReason ?? reason, tail: { ...(end.tail as ChatTail), cut } };
}

/**
 * The end of a reply that ran past its budget. If the cap was sent, this is the provider's fault. Otherwise the
 * reply counts as cut.
 */
export function nativeOverCap(context: ReplyContext, produced: NativeProduced): ReplyEnd {
  const isFault = context.budget.keptBy === 'provider';
  if (isFault) {
    const usage: ChatUsage = { ...measureUsage(context, produced), flags: ['over_cap'] };
    return toEnd(context, produced, usage, { outcome: 'over_cap', estimated: true, isBroken: true });
  }
  const usage = cutUsage(produced.speech.claim, context, produced);
  return toEnd(context, produced, usage, { outcome: 'cut', estimated: usage.estimated, isBroken: true });
}

interface EndKind {
  readonly outcome: ReplyEnd['outcome'];
  readonly estimated?: boolean;
  readonly isBroken?: boolean;
}

/** The finish reason is stored with the record of the call. */
const FINISH_REASON_MAX = 64;

function toEnd(
  { rates }: ReplyContext,
  { speech, before, write }: NativeProduced,
  { usage, flags, shown, details }: ChatUsage,
  { outcome, estimated = false, isBroken = false }: EndKind,
): ReplyEnd {
  const { claim } = speech;
  const isCorrected =
    claim?.['prompt_tokens'] !== shown['prompt_tokens'] || claim?.['completion_tokens'] !== shown['completion_tokens'];
  const tail: ChatTail = {
    before,
    body: {},
    usage: shown,
    ...costOfParts(rates, usage),
    native: (cost, cut) => write({ cost, usage: shown, isCorrected, cut, isBroken }),
  };
  const finishReason = speech.finish?.slice(0, FINISH_REASON_MAX) ?? null;
  return { usage, outcome, estimated, finishReason, flags, tail, details };
}
