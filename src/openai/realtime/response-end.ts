import { isObject, type JsonObject } from '#wire';
import { formatUsd, type SettledFrame, toUsdNumber } from '#billing/amounts';
import { imageTokensMax } from '#config';
import { chargeOfCut, type Cut, type ReplyEnd } from '#call';
import { flagClaim, NO_FLAGS, type RaisedFlag } from '#call/flags';
import { isOwn, type Offer } from '#catalog';
import { unseenTokens } from '../chat/request/chat-budget.ts';
import { isCount, readUsage } from '../chat/reply/chat-usage.ts';
import { tokensOf } from '../chat/request/prompt-size.ts';
import type { Growth, ResponseBounds } from './conversation-size.ts';

/** The parts of a response that a provider got and delivered, as far as the gateway can measure it. */
export interface Delivered {
  /** The conversation when the response began. */
  sound: Growth;
  /** Bytes of text, of transcripts and of the arguments of functions. */
  textBytes: number;
  audioSeconds: number;
}

export interface ResponseResult {
  /** The usage that is billed, in the form of the Realtime API; null if nothing is known. */
  readonly usage: JsonObject | null;
}

/** Tokens that a second of delivered sound has: as a bound of claims, and as a measure. */
const SPOKEN_MOST = 50;
const SPOKEN_USUAL = 20;

/** Why a response ended without a `response.done` of its provider. */
type Unfinished = Cut['reason'] | 'provider_left';

/**
 * The end of a response by its `response.done`. One that failed is free. One of which nothing came, because it was
 * cancelled or all of it was thinking, is paid at the operator's own provider, which bills its input; a provider that
 * dialled in is paid for what came. Without a claim, what came is measured.
 */
export function endOfResponse(
  offer: Offer,
  bounds: ResponseBounds,
  response: JsonObject,
  deltas: Delivered,
): ReplyEnd<ResponseResult> {
  const { status, status_details: details, usage: claim } = response;
  const finishReason = wordOf(isObject(details) ? details['reason'] : undefined) ?? wordOf(status);
  // A provider may send its output whole, in place of deltas.
  const delivered = cameOf(deltas) ? deltas : { ...deltas, textBytes: textBytesOf(response['output']) };
  const claimed = toChatClaim(claim, bounds);
  const isPaid = status !== 'failed' && (cameOf(delivered) || isOwn(offer));
  if (!isPaid) return free(finishReason, claimed.claim && toShown(claimed.claim));
  if (claimed.claim === null) {
    // Who cancels before the first word may also cancel the report.
    if (!cameOf(delivered) && status !== 'cancelled') return { ...free(finishReason, null), flags: ['usage_missing'] };
    const flag = claim === undefined || claim === null ? 'usage_missing' : 'usage_invalid';
    return measuredEnd(offer, bounds, delivered, { finishReason, flag });
  }
  return billed(offer, bounds, claimed, delivered, {
    outcome: typeof status !== 'string' || ENDS.has(status) ? 'complete' : 'cut',
    estimated: false,
    finishReason,
    flags: NO_FLAGS,
  });
}

/** The end of a response whose provider left, or that the gateway cut, before its `response.done`. */
export function endUnfinished(
  offer: Offer,
  bounds: ResponseBounds,
  delivered: Delivered,
  why: Unfinished,
): ReplyEnd<ResponseResult> {
  const came = cameOf(delivered);
  // A session of an own provider has taken what it was asked for.
  const charge = why === 'provider_left' || chargeOfCut({ reason: why, own: isOwn(offer) }, { came, reported: false });
  if (charge === 'nothing' || (charge === true && !came)) return free(why, null);
  return measuredEnd(offer, bounds, delivered, {
    finishReason: why,
    flag: why === 'provider_left' ? 'usage_missing' : null,
  });
}

/** The ends of a response that has its answer. Of one that ends in a word that nobody knows, what came is paid. */
const ENDS: ReadonlySet<string> = new Set(['completed', 'incomplete', 'cancelled']);

const cameOf = ({ textBytes, audioSeconds }: Delivered): boolean => textBytes > 0 || audioSeconds > 0;

const TEXTS = ['text', 'transcript', 'arguments'];

function textBytesOf(output: unknown): number {
  if (Array.isArray(output)) return (output as unknown[]).reduce<number>((sum, one) => sum + textBytesOf(one), 0);
  if (!isObject(output)) return 0;
  const own = TEXTS.reduce((sum, name) => {
    const text = output[name];
    return typeof text === 'string' ? sum + Buffer.byteLength(text) : sum;
  }, 0);
  return own + textBytesOf(output['content']);
}

const free = (finishReason: string | null, usage: JsonObject | null): ReplyEnd<ResponseResult> => ({
  usage: null,
  outcome: 'free',
  estimated: false,
  finishReason,
  flags: NO_FLAGS,
  result: { usage },
});

function measuredEnd(
  offer: Offer,
  bounds: ResponseBounds,
  delivered: Delivered,
  { finishReason, flag }: { readonly finishReason: string | null; readonly flag: RaisedFlag | null },
): ReplyEnd<ResponseResult> {
  const spoken = Math.ceil(delivered.audioSeconds * SPOKEN_USUAL);
  const { sound: conversation } = delivered;
  // The bound of the sound is twice what it usually has.
  const soundTokens = Math.floor(conversation.audioTokens / 2);
  const seen = isOwn(offer) ? conversation.images * imageTokensMax(offer.model!, true) : 0;
  const prompt = Math.min(tokensOf(conversation.bytes) + soundTokens + seen, bounds.budget.promptTokensMax);
  const completion = Math.min(tokensOf(delivered.textBytes) + spoken, bounds.budget.completionTokensMax);
  const claim: ChatClaim = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { audio_tokens: Math.min(soundTokens, prompt) },
    completion_tokens_details: { audio_tokens: Math.min(spoken, completion) },
  };
  return billed(offer, bounds, { claim, soundBeyond: null }, delivered, {
    outcome: 'cut',
    estimated: true,
    finishReason,
    flags: flag === null ? [] : [flag],
  });
}

function billed(
  offer: Offer,
  bounds: ResponseBounds,
  { claim, soundBeyond }: ReadClaim,
  { textBytes, audioSeconds }: Delivered,
  end: Pick<ReplyEnd, 'outcome' | 'estimated' | 'finishReason' | 'flags'>,
): ReplyEnd<ResponseResult> {
  const { budget, size, parts } = bounds;
  const read = readUsage(
    claim,
    { budget, size, parts, unseen: unseenTokens(offer) },
    {
      outputBytes: textBytes,
      otherBytes: Math.ceil(audioSeconds * SPOKEN_MOST),
    },
  );
  const flags =
    soundBeyond === null
      ? read.flags
      : flagClaim(read.flags, { meter: 'audio', claimed: soundBeyond, most: bounds.audioTokensMax });
  return {
    ...end,
    usage: read.usage,
    flags: [...end.flags, ...flags],
    details: read.details,
    result: { usage: toShown(read.shownUsage as unknown as ChatClaim) },
  };
}

/** A claim in the form of chat, which has the same meaning under other names. */
interface ChatClaim {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: unknown;
  readonly prompt_tokens_details: JsonObject;
  readonly completion_tokens_details: JsonObject;
}

interface ReadClaim {
  /** null for a claim that is missing or invalid. */
  readonly claim: ChatClaim | null;
  /** The tokens of sound that it has, if they are beyond the bounds. */
  readonly soundBeyond: number | null;
}

function toChatClaim(claim: unknown, { audioTokensMax, parts }: ResponseBounds): ReadClaim {
  if (!isObject(claim)) return { claim: null, soundBeyond: null };
  const { input_tokens: prompt, output_tokens: completion, total_tokens: total } = claim;
  if (!isCount(prompt) || !isCount(completion)) return { claim: null, soundBeyond: null };
  const ofPrompt = isObject(claim['input_token_details']) ? claim['input_token_details'] : {};
  const ofCompletion = isObject(claim['output_token_details']) ? claim['output_token_details'] : {};
  const sound = isCount(ofPrompt['audio_tokens']) ? ofPrompt['audio_tokens'] : 0;
  // Only sound with a price of its own was bounded for the lock.
  const isBounded = sound <= audioTokensMax || !parts.priced.has('audio');
  return {
    claim: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: total ?? null,
      prompt_tokens_details: isBounded ? ofPrompt : { ...ofPrompt, audio_tokens: audioTokensMax },
      completion_tokens_details: ofCompletion,
    },
    soundBeyond: isBounded ? null : sound,
  };
}

const toShown = (claim: ChatClaim): JsonObject => ({
  total_tokens: claim.prompt_tokens + claim.completion_tokens,
  input_tokens: claim.prompt_tokens,
  output_tokens: claim.completion_tokens,
  input_token_details: claim.prompt_tokens_details,
  output_token_details: claim.completion_tokens_details,
});

/** The finish reason is stored with the call's record, and a provider may send a megabyte. */
const WORD_MAX = 64;
const wordOf = (word: unknown): string | null => (typeof word === 'string' ? word.slice(0, WORD_MAX) : null);

/** The usage of a settled response with its cost, as at `/chat/completions`. */
export function usageWithCost({ result, settlement, receipt }: SettledFrame<ResponseResult>): JsonObject {
  const { charged, fee } = settlement;
  return {
    ...result?.usage,
    cost: toUsdNumber(charged),
    cost_details: {
      charged_usd: formatUsd(charged),
      fee_usd: formatUsd(fee),
      ...(receipt === null ? {} : { receipt }),
    },
  };
}
