import { formatUsd, METERS } from '#billing';
import type { ServiceConfig } from '../gateway/wire.ts';

/** A configured service on one line: name, prices, and where it runs. Without secrets. */
export function describeService({ service: { name, providerName, rates }, target }: ServiceConfig): string {
  const prices = METERS.filter((meter) => rates[meter] !== undefined).map((meter) =>
    meter === 'prompt' || meter === 'completion' ? `${meter} ${formatUsd(rates[meter]!)}/1M` : `${meter} ${formatUsd(rates[meter]! / 1_000_000n)}`,
  );
  const where = target.kind === 'http' ? `${target.url}${target.apiKey === null ? ' (no key)' : ''}` : target.command;
  return `${name}  by ${providerName}  ${prices.join(', ')}  → ${where}`;
}
