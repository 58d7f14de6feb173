import type { VideoFacts } from '../catalogue.ts';

/** The form fields, as typed. An empty field leaves the choice to the model. */
export interface VideoAsk {
  readonly prompt: string;
  readonly duration: string;
  readonly resolution: string;
  readonly ratio: string;
  readonly n: number;
  readonly sound: boolean;
  readonly seed: string;
  readonly negative: string;
  /** Data URL of the first frame. */
  readonly frame: string | null;
}

export const QUEUE_PATH = '/api/v1/video/queue';
const DURATIONS = ['5s', '10s'] as const;
const MICRO = 1_000_000;

/** The lengths that the form offers. A model without a list accepts other lengths too. */
export const durationsOf = ({ durations }: VideoFacts): readonly string[] =>
  durations.length > 0 ? durations : DURATIONS;

export const firstAsk = (facts: VideoFacts): VideoAsk => ({
  prompt: '',
  duration: durationsOf(facts)[0]!,
  resolution: facts.resolutions.includes('720p') ? '720p' : (facts.resolutions[0] ?? ''),
  ratio: facts.aspectRatios[0] ?? '16:9',
  n: 1,
  sound: false,
  seed: '',
  negative: '',
  frame: null,
});

/** The price of the request in USD. The gateway locks exactly this amount. null if the model has no price for it. */
export function priceOf(facts: VideoFacts, ask: VideoAsk): number | null {
  const perSecond = facts.perSecond[ask.resolution];
  if (perSecond === undefined) return null;
  const seconds = Number.parseFloat(ask.duration);
  const each = seconds * perSecond * (ask.sound ? facts.audioMultiplier : 1) + facts.base;
  return Math.ceil(ask.n * each * MICRO - 1e-6) / MICRO;
}

export const videoBody = (model: string, ask: VideoAsk): Readonly<Record<string, unknown>> => ({
  model,
  prompt: ask.prompt.trim(),
  duration: ask.duration,
  ...(ask.resolution === '' ? {} : { resolution: ask.resolution }),
  aspect_ratio: ask.ratio,
  ...(ask.n === 1 ? {} : { n: ask.n }),
  ...(ask.sound ? { generate_audio: true } : {}),
  ...(ask.seed.trim() === '' ? {} : { seed: Number(ask.seed) }),
  ...(ask.negative.trim() === '' ? {} : { negative_prompt: ask.negative.trim() }),
  ...(ask.frame === null ? {} : { image_url: ask.frame }),
});
