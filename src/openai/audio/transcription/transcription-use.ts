import type { Usage } from '#billing/amounts';
import type { Offer } from '#catalog';
import { flagBeyond, NO_FLAGS, type RaisedFlag } from '#call/flags';
import { isObject } from '#wire';
import { tokensOf } from '../../chat/request/prompt-size.ts';
import type { MeasuredAudio } from '../measure/measure-audio.ts';
import { claimedNumber, isClaim } from '../shown-usage.ts';
import { pricedByToken } from '../speech/speech-use.ts';

export interface UploadSize {
  readonly audio: MeasuredAudio;
  /** UTF-8 bytes of the words that guide the model, as a tokenizer gets them: a token has at least one. */
  readonly textBytes: number;
  readonly samples: number;
}

/** The most that a transcription can use at an offer. It is locked. */
interface TranscriptionBound {
  readonly seconds: number;
  /** Tokens of the prompt, with those of sound. */
  readonly promptTokens: number;
  readonly audioTokens: number;
  readonly completionTokens: number;
}

/** Vendors round up, and their decoders add some samples. */
const SECONDS_SLACK = 1;
/** The longest sample of a voice that vendors take. */
const SAMPLE_S = 10;
/** The most tokens of a second of sound: 32 at Google, 10 at OpenAI. */
const AUDIO_TOKENS_PER_S = 32;
/** To estimate the tokens that a provider does not report. */
const USUAL_AUDIO_TOKENS_PER_S = 10;
const TOKENS_OF_FRAME = 64;
/** Three times as fast as people speak, with marks of time between the words. */
const WORDS_TOKENS_PER_S = 25;
const COMPLETION_TOKENS_LEAST = 256;

const wholeSeconds = (seconds: number): number => claimedNumber(seconds) ?? 0;

export function transcriptionBound({ audio, textBytes, samples }: UploadSize, { model }: Offer): TranscriptionBound {
  const { contextLength, maxOutputTokens } = model!;
  const seconds = wholeSeconds(audio.secondsMax) + SECONDS_SLACK;
  const audioTokens = (seconds + samples * SAMPLE_S) * AUDIO_TOKENS_PER_S;
  return {
    seconds,
    promptTokens: audioTokens + Math.min(textBytes + TOKENS_OF_FRAME, contextLength),
    audioTokens,
    completionTokens: Math.min(seconds * WORDS_TOKENS_PER_S + COMPLETION_TOKENS_LEAST, maxOutputTokens ?? Infinity),
  };
}

export const boundAsUsage = ({ seconds, promptTokens, audioTokens, completionTokens }: TranscriptionBound): Usage => ({
  second: BigInt(seconds),
  prompt: BigInt(promptTokens),
  audio: BigInt(audioTokens),
  completion: BigInt(completionTokens),
});

export interface TranscriptClaim {
  readonly usage: Readonly<Record<string, unknown>> | null;
  readonly duration: unknown;
  readonly bytes: number;
  /** The reply has a format in which providers report their usage, and is whole. */
  readonly mayClaim: boolean;
}

interface TranscriptionUse {
  readonly usage: Usage;
  readonly estimated: boolean;
  readonly flags: readonly RaisedFlag[];
  readonly shownUsage: Readonly<Record<string, unknown>>;
}

/**
 * The use of a transcription. The seconds and the tokens are those that the reply reports, at most those that are
 * locked. A provider that dialled in is also held against the sound that was found in the file, and against the words
 * that came. Without a report, the seconds are those of the file, and the tokens are estimated.
 */
export function transcriptionUsed(size: UploadSize, offer: Offer, claim: TranscriptClaim): TranscriptionUse {
  const bound = transcriptionBound(size, offer);
  const seconds = secondsUsed(size, bound, offer, claim);
  if (!pricedByToken(offer)) return seconds;
  if (!offer.price.rates.second) return tokensUsed(size, bound, offer, claim);
  const tokens = tokensUsed(size, bound, offer, claim, seconds.flags);
  return { ...tokens, usage: { ...tokens.usage, ...seconds.usage } };
}

/** The length of the sound where nobody reports it. A provider that dialled in is not paid for what may be none. */
const heardIn = ({ seconds, secondsHeard }: MeasuredAudio, { endpoint }: Offer): number =>
  wholeSeconds(endpoint.kind === 'direct' ? secondsHeard : seconds);

function secondsUsed({ audio }: UploadSize, bound: TranscriptionBound, offer: Offer, claim: TranscriptClaim) {
  const { usage, duration } = claim;
  // No sound has a length of 0.
  const claimedSeconds =
    claimedNumber(usage?.['type'] === 'tokens' ? duration : (usage?.['seconds'] ?? duration)) || null;
  const most = offer.endpoint.kind === 'direct' ? bound.seconds : wholeSeconds(audio.seconds) + SECONDS_SLACK;
  const seconds = Math.min(claimedSeconds ?? heardIn(audio, offer), most);
  const estimated = claimedSeconds === null;
  const flags = flagBeyond(NO_FLAGS, 'second', claimedSeconds ?? 0, most);
  const shownUsage = { type: 'duration', seconds, ...(estimated ? { estimated } : {}) };
  return { usage: { second: BigInt(seconds) }, estimated, flags, shownUsage };
}

/** Tokens that stand around the words of a transcript. */
const WORDS_FRAME = 64;

function tokensUsed(
  size: UploadSize,
  bound: TranscriptionBound,
  offer: Offer,
  { usage, bytes, mayClaim }: TranscriptClaim,
  earlier = NO_FLAGS,
) {
  const { input_tokens: input, output_tokens: output, input_token_details: parts } = usage ?? {};
  const claimed = { input: claimedNumber(input), output: claimedNumber(output) };
  const isClaimed = isClaim(claimed);
  const audioClaim = isObject(parts) ? claimedNumber(parts['audio_tokens']) : null;
  const seconds = wholeSeconds(size.audio.seconds) + size.samples * SAMPLE_S;
  const own = offer.endpoint.kind === 'direct';
  const most = {
    audio: own ? bound.audioTokens : Math.min(bound.audioTokens, (seconds + SECONDS_SLACK) * AUDIO_TOKENS_PER_S),
    text: bound.promptTokens - bound.audioTokens,
    output: own ? bound.completionTokens : Math.min(bound.completionTokens, bytes + WORDS_FRAME),
  };
  const claimedTokens = isClaimed
    ? { input: claimed.input!, audio: Math.min(audioClaim ?? 0, claimed.input!), output: claimed.output! }
    : estimate(size, heardIn(size.audio, offer) + size.samples * SAMPLE_S, bytes);
  const audio = Math.min(claimedTokens.audio, most.audio);
  // Without details the tokens of sound are among the others.
  const textMost = audioClaim === null && isClaimed ? most.text + most.audio : most.text;
  const claimedText = claimedTokens.input - claimedTokens.audio;
  const text = Math.min(claimedText, textMost);
  const tokens = { input: audio + text, output: Math.min(claimedTokens.output, most.output) };
  let flags: readonly RaisedFlag[] = !isClaimed && mayClaim ? [...earlier, 'usage_missing'] : earlier;
  if (isClaimed) {
    flags = flagBeyond(flags, 'prompt', claimedText, textMost);
    flags = flagBeyond(flags, 'audio', claimedTokens.audio, most.audio);
    flags = flagBeyond(flags, 'completion', claimedTokens.output, most.output);
  }
  return {
    usage: { prompt: BigInt(text), audio: BigInt(audio), completion: BigInt(tokens.output) },
    estimated: !isClaimed,
    flags,
    shownUsage: {
      type: 'tokens',
      input_tokens: tokens.input,
      input_token_details: { text_tokens: text, audio_tokens: audio },
      output_tokens: tokens.output,
      total_tokens: tokens.input + tokens.output,
      ...(isClaimed ? {} : { estimated: true }),
    },
  };
}

function estimate({ textBytes }: UploadSize, seconds: number, bytes: number) {
  const audio = seconds * USUAL_AUDIO_TOKENS_PER_S;
  return { input: audio + tokensOf(textBytes), audio, output: tokensOf(bytes) };
}
