import type { Pricing, ToolPrice } from '../api/pricing.ts';
import type { Kind } from './kinds.ts';
import { formatUsd } from './usd.ts';

/** An amount with its unit: `$0.50` `Per 1M tokens in`. */
export interface PriceLine {
  readonly amount: string;
  readonly unit: string;
}

/** A price in one line, for rows of tables. */
export function shortPrice(kind: Kind, pricing: Pricing): PriceLine {
  switch (kind) {
    case 'model': {
      const { prompt, completion, character, per_minute: minute, per_call } = pricing;
      if (!isFree(character)) return { amount: formatUsd(character!), unit: 'per 1M characters' };
      if (!isFree(minute)) return { amount: formatUsd(minute!), unit: 'per minute' };
      if (!isFree(per_call)) return { amount: formatUsd(per_call!), unit: 'per call' };
      if (isFree(prompt) && isFree(completion)) return FREE;
      if (isFree(completion)) return { amount: formatUsd(prompt ?? 0), unit: 'per 1M tokens' };
      return { amount: `${formatUsd(prompt ?? 0)} / ${formatUsd(completion!)}`, unit: IN_AND_OUT };
    }
    case 'tool':
    case 'agent':
      return callPrice(kind, pricing);
    case 'image': {
      const { generation = 0, resolutions = {} } = pricing;
      return { amount: range([generation, ...Object.values(resolutions)]), unit: 'per image' };
    }
    case 'video': {
      const base = pricing.base ?? 0;
      const amount = range(Object.values(secondsOf(pricing)));
      return { amount, unit: base === 0 ? 'per second' : `per second, and ${formatUsd(base)} per video` };
    }
  }
}

/** The unit of a model's price in a row. */
export const IN_AND_OUT = 'per 1M tokens in / out';
const FREE: PriceLine = { amount: 'Free', unit: '' };
const hasOtherUnit = ({ character, per_minute, per_call }: Pricing) =>
  [character, per_minute, per_call].some((usd) => !isFree(usd));
const isFree = (usd: number | null | undefined) => (usd ?? 0) === 0;

function callPrice(kind: Kind, pricing: Pricing): PriceLine {
  const { per_call, per_task, per_second, prompt, completion, tools = {}, nested_max: nested } = pricing;
  const unit = kind === 'tool' ? 'per call' : per_task === null || per_task === undefined ? 'per message' : 'per task';
  const fixed = [per_call ?? per_task ?? 0, ...Object.values(tools)];
  const byUse = !isFree(prompt) || !isFree(completion) || (typeof per_second === 'number' && per_second > 0);
  if (fixed.every((usd) => usd === 0)) return byUse ? { amount: 'By use', unit: '' } : FREE;
  const calls = isFree(nested) ? '' : `, and up to ${formatUsd(nested!)} for its calls`;
  return { amount: range(fixed), unit: `${unit}${byUse ? ', and by use' : ''}${calls}` };
}

function range(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? formatUsd(low) : `${formatUsd(low)}–${formatUsd(high)}`;
}

const secondsOf = ({ per_second }: Pricing): Readonly<Record<string, number>> =>
  typeof per_second === 'number' ? { '': per_second } : (per_second ?? {});

/** Units of a model's prices, in the order in which they are shown. */
const TOKEN_UNITS = {
  prompt: 'Per 1M tokens in',
  completion: 'Per 1M tokens out',
  image: 'Per input image',
  input_cache_read: 'Per 1M tokens read from a cache',
  input_cache_write: 'Per 1M tokens written to a cache',
  input_cache_write_1h: 'Per 1M tokens written for an hour',
  audio: 'Per 1M tokens of sound in',
  input_audio_cache: 'Per 1M tokens of sound read from a cache',
  internal_reasoning: 'Per 1M tokens of reasoning',
  audio_output: 'Per 1M tokens of sound out',
  image_output: 'Per 1M tokens of pictures out',
  web_search: 'Per web search',
  character: 'Per 1M characters spoken',
  per_minute: 'Per minute of sound transcribed',
  per_call: 'Per call or search unit',
} as const;
type TokenPrices = Partial<Readonly<Record<keyof typeof TOKEN_UNITS, number | null>>>;

const tokenPrices = (prices: TokenPrices, before: TokenPrices = {}): [number | null | undefined, string][] =>
  Object.entries(TOKEN_UNITS).map(([meter, unit]) => {
    const usd = prices[meter as keyof TokenPrices];
    return [usd === before[meter as keyof TokenPrices] ? null : usd, unit];
  });

/** Prices that hold for some calls only, such as those with long prompts. */
export interface PriceGroup {
  readonly title: string;
  readonly lines: readonly PriceLine[];
}

/** The prices of long prompts and of service tiers, each with the prices that differ from those before. */
export function priceGroups(pricing: Pricing): readonly PriceGroup[] {
  const { service_tiers: named = {} } = pricing;
  return [
    ...tierGroups(pricing, pricing.tiers, ''),
    ...Object.entries(named).flatMap(([name, tier]) => [
      { title: `Service tier ${name}`, lines: linesOf(tokenPrices(tier, pricing)) },
      ...tierGroups(tier, tier.tiers, `Service tier ${name}, `),
    ]),
  ].filter(({ lines }) => lines.length > 0);
}

function tierGroups(base: TokenPrices, tiers: Pricing['tiers'] = [], title: string): PriceGroup[] {
  let before = base;
  return tiers.map((tier) => {
    const lines = linesOf(tokenPrices(tier, before));
    before = tier;
    const prompts = `prompts of more than ${tier.above.toLocaleString('en-US')} tokens`;
    return { title: title === '' ? `P${prompts.slice(1)}` : title + prompts, lines };
  });
}

/** All parts of a price, each with its unit. */
export function priceLines(kind: Kind, pricing: Pricing): readonly PriceLine[] {
  const lines: [number | null | undefined, string][] = [];
  switch (kind) {
    case 'model':
      // What is priced by another unit alone has no price by token.
      if (hasOtherUnit(pricing) && isFree(pricing.prompt) && isFree(pricing.completion))
        lines.push(...tokenPrices({ ...pricing, prompt: null, completion: null }));
      else lines.push([pricing.prompt ?? 0, TOKEN_UNITS.prompt], ...tokenPrices({ ...pricing, prompt: null }));
      break;
    case 'tool':
      lines.push(
        [pricing.per_call ?? 0, 'Per call'],
        ...named(pricing.tools, (name) => `Per call of ${name}`),
        ...byUse(pricing),
      );
      break;
    case 'agent':
      lines.push([pricing.per_call, 'Per message'], [pricing.per_task, 'Per task'], ...byUse(pricing));
      lines.push([pricing.nested_max, 'For calls of its own, at most']);
      break;
    case 'image':
      lines.push(
        [pricing.generation, 'Per image'],
        [pricing.prompt, 'Per 1M tokens in'],
        ...named(pricing.resolutions, (tier) => `Per image in ${tier}`),
      );
      lines.push(...named(pricing.variants, (variant) => `Per image, ${variant}`));
      lines.push([pricing.edit, 'Per edit'], [pricing.input_image, 'Per image that is edited']);
      break;
    case 'video':
      lines.push(...named(secondsOf(pricing), (tier) => (tier === '' ? 'Per second' : `Per second in ${tier}`)));
      lines.push([pricing.base === 0 ? null : pricing.base, 'Per video, in addition']);
      break;
  }
  return linesOf(lines);
}

const linesOf = (lines: readonly [number | null | undefined, string][]): readonly PriceLine[] =>
  lines
    .filter(([usd]) => usd !== null && usd !== undefined)
    .map(([usd, unit]) => ({ amount: usd === 0 ? 'Free' : formatUsd(usd!), unit }));

const byUse = ({ per_second, prompt, completion, per_call_max }: Pricing): [number | null | undefined, string][] => [
  [typeof per_second === 'number' ? per_second : null, 'Per second'],
  [prompt, 'Per 1M tokens in'],
  [completion, 'Per 1M tokens out'],
  [per_call_max, 'Per call, at most'],
];

const named = (
  prices: Readonly<Record<string, number>> | undefined,
  unit: (name: string) => string,
): [number, string][] => Object.entries(prices ?? {}).map(([name, usd]) => [usd, unit(name)]);

/** The price of one tool of a service: `$0.01`, `Free`, or `At most $0.05` if it is charged by use. */
export function toolPrice({ per_call, per_call_max }: ToolPrice): string {
  if (per_call_max !== undefined) return `At most ${formatUsd(Number(per_call_max))}`;
  return Number(per_call ?? 0) === 0 ? 'Free' : formatUsd(Number(per_call));
}
