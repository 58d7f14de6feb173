import {
  type Meter,
  perMinute,
  ratesToUsd,
  toUsdNumber,
  type MicroUsd,
  type Price,
  formatUsd,
  unitUsd,
} from '#billing/amounts';
import type { Primitive } from '#config';
import type { Offer, PricedOffer } from './offers.ts';
import { compare } from './listings.ts';

/** Prices in the form that the catalogue shows: JSON numbers in USD, with the names of a provider's file. */
export type PriceView = ModelPrice | ToolPrice | AgentPrice | ImagePrice | VideoPrice;

/**
 * USD per 1M tokens, per 1M characters, per input image, per search and per minute of sound. A part of the tokens is
 * present only if it has its own price.
 */
type MeterPrices = Readonly<Partial<Record<Meter | 'per_minute', number>>>;

/** The prices of one service tier. `tiers`: those of requests whose prompt has more than `above` tokens. */
type TierPrice = MeterPrices & { readonly tiers?: readonly (MeterPrices & { readonly above: number })[] };

/** The price of a model. `image` is null if images have no own price. */
export type ModelPrice = Omit<TierPrice, 'prompt' | 'completion' | 'image' | 'call'> & {
  readonly prompt: number;
  readonly completion: number;
  readonly image: number | null;
  /** USD per call, or per search unit. Present only if it is charged. */
  readonly per_call?: number;
  /** By the name of the service tier. */
  readonly service_tiers?: Readonly<Record<string, TierPrice>>;
};

/**
 * USD per call. `tools`: the tools with another price. The rates and the maximum cost of a call are present only if
 * calls are charged by use.
 */
interface ToolPrice {
  readonly per_call: number;
  readonly per_second?: number;
  readonly prompt?: number;
  readonly completion?: number;
  readonly per_call_max?: number;
  readonly tools: Readonly<Record<string, number>>;
}

/**
 * USD per message, per task and per 1M tokens; null if not charged. `per_second`, `per_call_max` (the maximum cost of a
 * call that is charged by use) and `nested_max` (the most that the agent may spend on its own calls) are present only
 * where they apply.
 */
interface AgentPrice {
  readonly per_call: number | null;
  readonly per_task: number | null;
  readonly per_second?: number;
  readonly prompt: number | null;
  readonly completion: number | null;
  readonly per_call_max?: number;
  readonly nested_max?: number;
}

/**
 * USD per image. `prompt`: USD per 1M tokens of words, if they have a price. `resolutions`: tiers with another price.
 * `variants`: tiers in a quality (`1K/high`) and edits of a tier (`edit/1K`) with another price. `edit`: the price of
 * an edited image. `input_image`: the price of each image to edit. The last two are present only if edits have their
 * own prices.
 */
export interface ImagePrice {
  readonly generation: number;
  readonly prompt?: number;
  readonly resolutions?: Readonly<Record<string, number>>;
  readonly variants?: Readonly<Record<string, number>>;
  readonly edit?: number;
  readonly input_image?: number;
}

/**
 * USD per second for each resolution, in addition to `base` per video. With sound, a second costs `audio_multiplier`
 * times as much.
 */
export interface VideoPrice {
  readonly per_second: Readonly<Record<string, number>>;
  readonly base: number;
  readonly audio_multiplier: number;
}

type Priced = PricedOffer;

const VIEWS = {
  model: viewModelPrice,
  tool: viewToolPrice,
  agent: viewAgentPrice,
  image: viewImagePrice,
  video: viewVideoPrice,
} as const satisfies Record<Primitive, (offer: Priced) => PriceView>;

export function viewPrice(offer: Pick<Offer, 'primitive'> & Priced): PriceView {
  return VIEWS[offer.primitive](offer);
}

/**
 * An offer's price before a large rise. Until `effective_at` (RFC 3339) a call has to accept the new price explicitly.
 */
export interface RaiseView {
  readonly before: PriceView;
  readonly effective_at: string;
}

/** null if the price had no large rise lately. */
export function viewRaise({ primitive, raised }: Offer): RaiseView | null {
  return raised
    ? { before: viewPrice({ primitive, ...raised.was }), effective_at: new Date(raised.until).toISOString() }
    : null;
}

export function viewModelPrice({ price, variants }: Pick<Priced, 'price' | 'variants'>): ModelPrice {
  const { prompt = 0, completion = 0, image = null, call, ...parts } = viewTier(price);
  const tiers = Object.entries(variants).map(([name, tier]) => [name, viewTier(tier)] as const);
  return {
    prompt,
    completion,
    image,
    ...parts,
    ...(call === undefined ? {} : { per_call: call }),
    ...(tiers.length === 0 ? {} : { service_tiers: Object.fromEntries(tiers) }),
  };
}

function viewTier({ rates }: Price): TierPrice {
  const tiers = rates.tiers?.map(({ above, rates: at }) => ({ above: Number(above), ...ratesToUsd(at) }));
  const { second: _second, ...usd } = ratesToUsd(rates);
  return {
    ...usd,
    ...(rates.second === undefined ? {} : { per_minute: toUsdNumber(perMinute(rates.second)) }),
    ...(tiers === undefined ? {} : { tiers }),
  };
}

function viewToolPrice({ price, variants, priceCap }: Priced): ToolPrice {
  const { second, prompt, completion } = ratesToUsd(price.rates);
  return {
    per_call: usd(price, 'call'),
    ...(second === undefined ? {} : { per_second: second }),
    ...(prompt === undefined ? {} : { prompt }),
    ...(completion === undefined ? {} : { completion }),
    ...(priceCap === null ? {} : { per_call_max: toUsdNumber(priceCap) }),
    tools: byName(Object.entries(variants), 'call'),
  };
}

function viewAgentPrice({ price, priceCap, agent }: Priced): AgentPrice {
  const { call = null, second, prompt = null, completion = null } = ratesToUsd(price.rates);
  const byTask = agent?.chargedPer === 'task';
  return {
    per_call: byTask ? null : call,
    per_task: byTask ? call : null,
    ...(second === undefined ? {} : { per_second: second }),
    prompt,
    completion,
    ...(priceCap === null ? {} : { per_call_max: toUsdNumber(priceCap) }),
    ...(agent && agent.nestedMax > 0n ? { nested_max: toUsdNumber(agent.nestedMax) } : {}),
  };
}

export function viewImagePrice({ price, variants }: Priced): ImagePrice {
  const all = Object.entries(variants);
  const tiers = all.filter(([name]) => !name.includes('/') && name !== EDIT);
  const edit = variants[EDIT];
  const qualities = all.filter(([name]) => name.includes('/'));
  return {
    generation: usd(price, 'image'),
    ...(price.rates.prompt === undefined ? {} : { prompt: usd(price, 'prompt') }),
    ...(tiers.length === 0 ? {} : { resolutions: byName(tiers, 'image') }),
    ...(qualities.length === 0 ? {} : { variants: byName(qualities, 'image') }),
    ...(edit === undefined ? {} : { edit: usd(edit, 'image') }),
    ...(edit?.rates.input_image ? { input_image: usd(edit, 'input_image') } : {}),
  };
}

/** The variant with the prices of edited images. The module media reads it too. */
const EDIT = 'edit';

const WITH_AUDIO = '+audio';

export function viewVideoPrice({ price, variants }: Priced): VideoPrice {
  const silent = Object.entries(variants).filter(([name]) => !name.endsWith(WITH_AUDIO));
  let multiplier = 1;
  for (const [name, { rates }] of silent) {
    const withAudio: MicroUsd | undefined = variants[name + WITH_AUDIO]?.rates.second;
    // Six decimals, like in a provider's file. The multiplier is the same for all resolutions, so the first resolution
    // that is not free shows it.
    if (withAudio !== undefined && rates.second) {
      multiplier = Number((withAudio * 1_000_000n) / rates.second) / 1e6;
      break;
    }
  }
  return { per_second: byName(silent, 'second'), base: usd(price, 'call'), audio_multiplier: multiplier };
}

const usd = ({ rates }: Price, meter: Meter) => ratesToUsd(rates)[meter] ?? 0;

const byName = (prices: readonly (readonly [string, Price])[], meter: Meter) =>
  Object.fromEntries(prices.map(([name, price]) => [name, usd(price, meter)]));

/**
 * The price of a call of one tool, as exact decimal strings. The rates and the maximum cost of a call are present only
 * if calls are charged by use.
 */
export interface ToolCallPrice {
  /** "0" if the tool is free. */
  readonly per_call: string;
  readonly per_second?: string;
  /** Only of an image model. */
  readonly per_image?: string;
  /** Per 1M tokens, like `completion`. */
  readonly prompt?: string;
  readonly completion?: string;
  /** The maximum cost of a call: by its use, or at a more expensive provider of the service. */
  readonly per_call_max?: string;
  readonly currency: 'USDC';
}

type PricedTool = Pick<Offer, 'price' | 'variants' | 'priceCap'>;

/** The price of `tool` at `offer`. `offers`: all offers that a call of the service may be sent to. */
export function viewToolCallPrice(
  offer: PricedTool,
  tool: string,
  offers: readonly PricedTool[] = [offer],
): ToolCallPrice {
  const { call = 0n, second, image, prompt, completion } = ownPrice(offer, tool) ?? offer.price.rates;
  const most = offers.reduce((dearest, other) => max(dearest, mostOf(other, tool)), mostOf(offer, tool));
  return {
    per_call: unitUsd(call),
    ...(second === undefined ? {} : { per_second: unitUsd(second) }),
    ...(image === undefined ? {} : { per_image: unitUsd(image) }),
    ...(prompt === undefined ? {} : { prompt: formatUsd(prompt) }),
    ...(completion === undefined ? {} : { completion: formatUsd(completion) }),
    ...(most > call / UNITS ? { per_call_max: formatUsd(most) } : {}),
    currency: 'USDC',
  };
}

const UNITS = 1_000_000n;

const ownPrice = ({ variants }: PricedTool, tool: string) =>
  Object.hasOwn(variants, tool) ? variants[tool]!.rates : undefined;

/** The maximum cost of a call in micro-USD. A tool with its own price is not charged by use. */
function mostOf(offer: PricedTool, tool: string): MicroUsd {
  const own = ownPrice(offer, tool);
  const perCall = (own ?? offer.price.rates).call ?? 0n;
  return own || offer.priceCap === null ? perCall / UNITS : offer.priceCap;
}

const max = (a: MicroUsd, b: MicroUsd) => (a > b ? a : b);

/** The offers of a tool service, cheapest first, in the same order at every gateway. */
export function byPrice(offers: readonly Offer[]): readonly Offer[] {
  if (offers.length < 2) return offers;
  const rate = ({ price }: Offer) => price.rates.call ?? 0n;
  return offers.toSorted((a, b) => (rate(a) < rate(b) ? -1 : rate(a) > rate(b) ? 1 : compare(a.id, b.id)));
}
