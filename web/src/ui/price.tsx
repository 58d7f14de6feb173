import type { ReactNode } from 'react';
import type { Pricing } from '../api/catalogue.ts';
import type { Kind } from './kind.tsx';
import { formatUsd } from './money.tsx';

/** An amount with its unit: `$0.50` `per 1M tokens read`. */
export interface PriceLine {
  readonly amount: string;
  readonly unit: string;
}

/** A price as one line, for rows of tables. */
export function shortPrice(kind: Kind, pricing: Pricing): PriceLine {
  switch (kind) {
    case 'model': {
      const { prompt, completion } = pricing;
      if (isFree(prompt) && isFree(completion)) return FREE;
      if (isFree(completion)) return { amount: formatUsd(prompt ?? 0), unit: '1M tokens' };
      return { amount: `${formatUsd(prompt ?? 0)} / ${formatUsd(completion!)}`, unit: '1M tokens in / out' };
    }
    case 'tool':
    case 'agent':
      return callPrice(kind, pricing);
    case 'image': {
      const { generation = 0, resolutions = {} } = pricing;
      return { amount: range([generation, ...Object.values(resolutions)]), unit: 'an image' };
    }
    case 'video':
      return { amount: range(Object.values(secondsOf(pricing))), unit: 'a second' };
  }
}

const FREE: PriceLine = { amount: 'Free', unit: '' };
const isFree = (usd: number | null | undefined) => (usd ?? 0) === 0;

function callPrice(kind: Kind, pricing: Pricing): PriceLine {
  const { per_call, per_task, per_second, prompt, completion, tools = {} } = pricing;
  const unit = kind === 'tool' ? 'a call' : per_task === null || per_task === undefined ? 'a message' : 'a task';
  const fixed = [per_call ?? per_task ?? 0, ...Object.values(tools)];
  const byUse = !isFree(prompt) || !isFree(completion) || (typeof per_second === 'number' && per_second > 0);
  if (fixed.every((usd) => usd === 0)) return byUse ? { amount: 'By use', unit: '' } : FREE;
  return { amount: range(fixed), unit: byUse ? `${unit} and use` : unit };
}

function range(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? formatUsd(low) : `${formatUsd(low)}–${formatUsd(high)}`;
}

const secondsOf = ({ per_second }: Pricing): Readonly<Record<string, number>> =>
  typeof per_second === 'number' ? { '': per_second } : (per_second ?? {});

/** Every part of a price, each with its unit. */
export function priceLines(kind: Kind, pricing: Pricing): readonly PriceLine[] {
  const lines: [number | null | undefined, string][] = [];
  switch (kind) {
    case 'model':
      lines.push(
        [pricing.prompt ?? 0, '1M tokens in'],
        [pricing.completion, '1M tokens out'],
        [pricing.image, 'an input image'],
      );
      break;
    case 'tool':
      lines.push(
        [pricing.per_call ?? 0, 'a call'],
        ...named(pricing.tools, (name) => `a call of ${name}`),
        ...byUse(pricing),
      );
      break;
    case 'agent':
      lines.push([pricing.per_call, 'a message'], [pricing.per_task, 'a task'], ...byUse(pricing));
      lines.push([pricing.nested_max, 'budget for its own calls, at most']);
      break;
    case 'image':
      lines.push([pricing.generation, 'an image'], ...named(pricing.resolutions, (tier) => `an image in ${tier}`));
      lines.push(...named(pricing.variants, (variant) => `an image, ${variant}`));
      lines.push([pricing.edit, 'an edit'], [pricing.input_image, 'each image that is edited']);
      break;
    case 'video':
      lines.push(...named(secondsOf(pricing), (tier) => (tier === '' ? 'a second' : `a second in ${tier}`)));
      lines.push([pricing.base === 0 ? null : pricing.base, 'each video, in addition']);
      break;
  }
  return lines
    .filter(([usd]) => usd !== null && usd !== undefined)
    .map(([usd, unit]) => ({ amount: usd === 0 ? 'Free' : formatUsd(usd!), unit }));
}

const byUse = ({ per_second, prompt, completion, per_call_max }: Pricing): [number | null | undefined, string][] => [
  [typeof per_second === 'number' ? per_second : null, 'a second'],
  [prompt, '1M tokens in'],
  [completion, '1M tokens out'],
  [per_call_max, 'a call, at most'],
];

const named = (
  prices: Readonly<Record<string, number>> | undefined,
  unit: (name: string) => string,
): [number, string][] => Object.entries(prices ?? {}).map(([name, usd]) => [usd, unit(name)]);

/** A price in a column of prices: the amount, and its unit below. */
export function Price({ kind, pricing }: { readonly kind: Kind; readonly pricing: Pricing }): ReactNode {
  const { amount, unit } = shortPrice(kind, pricing);
  return (
    <span className="figures inline-block text-right leading-5">
      <span className="block font-semibold whitespace-nowrap">{amount}</span>
      <span className="block text-xs whitespace-nowrap text-soft">{unit}</span>
    </span>
  );
}
