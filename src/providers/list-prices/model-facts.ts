import { KNOWN_PROVIDERS, type KnownProviderName } from '#config/known-providers';

/* What is known of a model by its name, for what its provider's list does not say. */

export type Product = 'text' | 'embeddings' | 'speech' | 'transcription';

export function productOf(model: string): Product {
  const name = model.toLowerCase();
  if (/embed/.test(name)) return 'embeddings';
  if (/(?:^|[-/.])tts(?:-|$)/.test(name)) return 'speech';
  return /transcribe|whisper|voxtral-mini-(?:transcribe|2[6-9])/.test(name) ? 'transcription' : 'text';
}

const SOUND = /transcribe|whisper|(?:^|[-/])(?:tts|stt|asr|speech|orpheus|playai)|-tts/;
/** Names of models that are not called by chat and whose use has no price here, each with the reason. */
const UNFIT: readonly (readonly [name: RegExp, why: string])[] = [
  [
    /(?:^|[-/.])(?:realtime|live|native-audio|sonic)/,
    'it is called over a realtime connection: offer it by [[models]] with params.wires',
  ],
  [SOUND, 'it speaks or transcribes: offer it by [[models]] with output_modalities'],
  [
    /dall-e|(?:^|[-/])(?:imagen|sora|veo|flux|lyria)|stable-diffusion|(?:^|[-/.])(?:gpt|chatgpt|grok)-.*(?:image|imagine)|-image(?:-|$)|nano-banana/,
    'it makes images or videos: offer it by [[images]] or [[videos]]',
  ],
  [/moderation|rerank|(?:^|[-/])(?:ocr|mistral-ocr)|robotics|computer-use|antigravity/, 'it is not for chat'],
  [
    /search-(?:preview|api)|deep-research|(?:^|[-/])sonar|groq\/compound|(?:^|[-/])compound(?:-|$)/,
    'it searches the web or calls other tools in each call, for prices that the list does not have',
  ],
];
const OF_OPENAI = [[/^(?:text-)?(?:davinci|babbage|curie|ada)(?:-\d|$)|instruct/, 'it is not for chat']] as const;
const UNFIT_AT: Readonly<Partial<Record<KnownProviderName, readonly (readonly [name: RegExp, why: string])[]>>> = {
  openai: OF_OPENAI,
  azure: OF_OPENAI,
  google: [[/^(?!gem|text-embedding|embedding)/, 'the Gemini API does not serve it']],
};

/** Why a model is not offered, by its name. null if it may be. */
export function unfit(use: KnownProviderName, model: string, takesSound: boolean): string | null {
  const name = model.toLowerCase();
  const isSpoken = KNOWN_PROVIDERS[use].audio === true && /^(?:speech|transcription)$/.test(productOf(name));
  const rule = [...UNFIT, ...(UNFIT_AT[use] ?? [])].find(
    ([pattern]) => pattern.test(name) && !(isSpoken && pattern === SOUND),
  );
  if (rule) return rule[1];
  return /audio/.test(name) && !takesSound ? 'it takes sound, for which the list has no price' : null;
}

type KindRules = readonly (readonly [name: RegExp, kinds: readonly string[]])[];

const TEXT = ['text'];
const WITH_IMAGES = ['text', 'image'];
const WITH_FILES = ['text', 'image', 'file'];
const OPENAI: KindRules = [
  [/^(?:o1-mini|o1-preview|o3-mini|gpt-oss)/, TEXT],
  [/^(?:gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4\.5|gpt-[5-9]|o[1-9])(?!.*audio)/, WITH_FILES],
  [/^gpt-4-turbo|vision/, WITH_IMAGES],
];
/** Kinds of content in a request, by the model's name. The first that fits counts. */
const INPUT: Readonly<Partial<Record<KnownProviderName, KindRules>>> = {
  openai: OPENAI,
  azure: OPENAI,
  anthropic: [[/^claude-(?!v1|2|instant)/, WITH_FILES]],
  bedrock: [[/claude|nova-(?:lite|pro|premier|2)/, WITH_IMAGES]],
  google: [
    [/^gemini-(?!embedding)/, ['text', 'image', 'audio', 'video', 'file']],
    [/^gemma-[3-9]/, WITH_IMAGES],
  ],
  xai: [[/^grok-(?:[4-9]|2-vision)/, WITH_IMAGES]],
};
const OF_OTHERS: KindRules = [
  [/vision|pixtral|[-.]vl[-.]|-vl$|llama-4|scout|maverick|kimi-k(?:2\.5|2p5|3)|gemma-[34]/, WITH_IMAGES],
];

export function inputKinds(use: KnownProviderName, model: string): readonly string[] {
  const name = model.toLowerCase();
  return (INPUT[use] ?? OF_OTHERS).find(([pattern]) => pattern.test(name))?.[1] ?? TEXT;
}

/**
 * Tokens of an answer, by the model's name. A number below the model's own only shortens long answers; a call that
 * sets no limit locks this many. The gateway learns the limit of a model that refuses a larger one.
 */
const OUTPUT: readonly (readonly [name: RegExp, tokens: number])[] = [
  // Three minutes of speech, and the words of five.
  [/-tts/, 16_000],
  [/transcribe/, 2_000],
  [/^gpt-4o|^chatgpt-4o|audio/, 16_384],
  [/^gpt-4\.1/, 32_768],
  [/^gpt-[5-9]/, 128_000],
  [/^o[1-9]/, 100_000],
  [/^gpt-(?:3|4)/, 4_096],
  [/claude-(?:3-opus|3-haiku|3-sonnet|2|v1|instant)/, 4_096],
  [/claude-3-5/, 8_192],
  [/claude-opus-4(?:-0|-1|-2025|$)/, 32_000],
  [/claude/, 64_000],
  [/gemini-(?:1|2\.0)/, 8_192],
  [/gemini/, 65_536],
];
const OUTPUT_OF_OTHERS = 32_768;

/** The most tokens of an answer. At most half of a context that is not known to be larger. */
export function outputMax(model: string, contextLength: number | null): number {
  const name = model.toLowerCase();
  const [, tokens] = OUTPUT.find(([pattern]) => pattern.test(name)) ?? [null, OUTPUT_OF_OTHERS];
  return contextLength === null ? tokens : Math.max(1, Math.min(tokens, Math.floor(contextLength / 2)));
}
