import type { Usage } from '#billing/amounts';
import { tokenizedBytes, isOwn, type Offer } from '#catalog';
import { flagBeyond, NO_FLAGS, type RaisedFlag } from '#call/flags';
import { tokensOf } from '../../chat/request/prompt-size.ts';
import { secondsOf, SPOKEN_TOKENS_PER_S } from '../../chat/request/sound.ts';
import { claimedNumber, isClaim } from '../shown-usage.ts';
import type { SpeechBody, SpeechFormat } from './speech-schema.ts';

export interface SpeechSize {
  /** Characters (Unicode code points) of `input`, as vendors count them. */
  readonly characters: number;
  readonly inputBytes: number;
  /** UTF-8 bytes of `input` and `instructions` as a tokenizer gets them: a token has at least one. */
  readonly textBytes: number;
  readonly speed: number;
  readonly format: SpeechFormat;
}

/** The most that speech can use at an offer. It is locked. */
export interface SpeechBound {
  readonly characters: number;
  readonly promptTokens: number;
  readonly audioTokens: number;
}

/** Tokens that a service may put around a text. */
const TOKENS_OF_FRAME = 64;
/** Tokens of a second, to estimate those that a provider does not report. */
const USUAL_TOKENS_PER_S = 21;
/** Speech has about 15 characters a second. */
const CHARACTERS_PER_S = 15;
/** Six times as long as usual: a digit is a word, and instructions may ask for slow speech. */
const SECONDS_PER_BYTE = 0.4;
const SECONDS_OF_FRAME = 10;

/** The fewest bytes of a second, to bound what the sound that came can be. Above 0 for each format. */
const LEAST_BYTES_PER_S: Readonly<Record<SpeechFormat, number>> = {
  mp3: 1_000,
  opus: 750,
  aac: 1_000,
  flac: 2_000,
  wav: 8_000,
  pcm: 16_000,
};

export function measureText({ input, instructions, speed, response_format: format }: SpeechBody): SpeechSize {
  return {
    characters: codePoints(input),
    inputBytes: Buffer.byteLength(input),
    textBytes: tokenizedBytes(input) + tokenizedBytes(instructions ?? ''),
    speed: speed ?? 1,
    format: format ?? 'mp3',
  };
}

function codePoints(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length - 1; at++) {
    const unit = text.charCodeAt(at) & 0xfc00;
    if (unit === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) count--;
  }
  return count;
}

export function speechBound({ characters, inputBytes, textBytes, speed }: SpeechSize, { model }: Offer): SpeechBound {
  const { contextLength, maxOutputTokens } = model!;
  const seconds = SECONDS_OF_FRAME + (inputBytes * SECONDS_PER_BYTE) / Math.min(1, speed);
  return {
    characters,
    promptTokens: Math.min(textBytes + TOKENS_OF_FRAME, contextLength),
    audioTokens: Math.min(Math.ceil(seconds * SPOKEN_TOKENS_PER_S), maxOutputTokens ?? Infinity),
  };
}

export const boundAsUsage = ({ characters, promptTokens, audioTokens }: SpeechBound): Usage => ({
  character: BigInt(characters),
  prompt: BigInt(promptTokens),
  completion: BigInt(audioTokens),
});

/** Whether an offer is charged by tokens. The usage of its reply is then needed. */
export const pricedByToken = ({ price: { rates } }: Pick<Offer, 'price'>): boolean =>
  [rates.prompt, rates.completion, rates.audio, rates.audio_output].some((rate) => (rate ?? 0n) > 0n);

interface CameIn {
  readonly bytes: number;
  readonly whole: boolean;
  readonly claim: Readonly<Record<string, unknown>> | null;
}

interface SpeechUse {
  readonly usage: Usage;
  readonly estimated: boolean;
  readonly flags: readonly RaisedFlag[];
  readonly shownUsage: Readonly<Record<string, unknown>>;
}

/**
 * The use of speech: its characters, and the tokens that the reply reports, at most those that are locked. A provider
 * that dialled in is also held against the sound that came, and of its reply that was cut only what came is counted.
 * The operator's own provider bills all characters that it got.
 */
export function speechUsed(size: SpeechSize, bound: SpeechBound, offer: Offer, came: CameIn): SpeechUse {
  const isOwnOffer = isOwn(offer);
  const characters =
    came.whole || isOwnOffer ? bound.characters : Math.min(bound.characters, spokenCharacters(size, came.bytes));
  const counted = { character: BigInt(characters) };
  const shownUsage = { type: 'characters', characters };
  if (!pricedByToken(offer)) return { usage: counted, estimated: !came.whole, flags: NO_FLAGS, shownUsage };
  const { input_tokens: input, output_tokens: output } = came.claim ?? {};
  const claimed = { input: claimedNumber(input), output: claimedNumber(output) };
  const isClaimed = isClaim(claimed);
  const most = {
    input: bound.promptTokens,
    output: isOwnOffer ? bound.audioTokens : Math.min(bound.audioTokens, tokensIn(size, came.bytes)),
  };
  const claimedTokens = isClaimed
    ? { input: claimed.input!, output: claimed.output! }
    : { input: tokensOf(size.textBytes), output: usualTokens(size, characters, came) };
  const tokens = {
    input: Math.min(claimedTokens.input, most.input),
    output: Math.min(claimedTokens.output, most.output),
  };
  let flags: readonly RaisedFlag[] = !isClaimed && came.whole ? ['usage_missing'] : NO_FLAGS;
  if (isClaimed) {
    flags = flagBeyond(flags, 'prompt', claimedTokens.input, most.input);
    flags = flagBeyond(flags, 'audio_output', claimedTokens.output, most.output);
  }
  return {
    usage: { ...counted, prompt: BigInt(tokens.input), audio_output: BigInt(tokens.output) },
    estimated: !isClaimed,
    flags,
    shownUsage: {
      ...shownUsage,
      type: 'tokens',
      input_tokens: tokens.input,
      output_tokens: tokens.output,
      total_tokens: tokens.input + tokens.output,
      ...(isClaimed ? {} : { estimated: true }),
    },
  };
}

const tokensIn = ({ format }: SpeechSize, bytes: number): number =>
  Math.ceil((bytes / LEAST_BYTES_PER_S[format] + 1) * SPOKEN_TOKENS_PER_S);

const spokenCharacters = ({ format, speed }: SpeechSize, bytes: number): number =>
  Math.ceil(secondsOf(format, bytes) * CHARACTERS_PER_S * speed);

function usualTokens({ format, speed }: SpeechSize, characters: number, { bytes, whole }: CameIn): number {
  const exact = format === 'pcm' || format === 'wav' || !whole;
  const seconds = exact ? secondsOf(format, bytes) : characters / CHARACTERS_PER_S / speed;
  return Math.ceil(seconds * USUAL_TOKENS_PER_S);
}
