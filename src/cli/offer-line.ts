import { formatUsd, METERS, type Meter, type Rates } from '#billing/amounts';
import type { ServiceConfig } from '#config';

/**
 * A configured service on one line, without secrets: name, prices (a range if they differ), and its address or command.
 */
export function describeService({ service: { name, providerName, rates, variants }, target }: ServiceConfig): string {
  const prices = METERS.filter((meter) => rates[meter] !== undefined).map((meter) =>
    describePrice(meter, [rates, ...Object.values(variants)]),
  );
  const where = target.kind === 'http' ? `${target.url}${target.apiKey === null ? ' (no key)' : ''}` : target.command;
  return `${name}  by ${providerName}  ${prices.join(', ')}  → ${where}`;
}

function describePrice(meter: Meter, all: readonly Rates[]): string {
  const per1M = meter === 'prompt' || meter === 'completion';
  const found = all.flatMap((rates) => rates[meter] ?? []);
  const [least, most] = [found.reduce((a, b) => (b < a ? b : a)), found.reduce((a, b) => (b > a ? b : a))].map((rate) =>
    formatUsd(per1M ? rate : rate / 1_000_000n),
  );
  return `${meter} ${least === most ? least : `${least} to ${most}`}${per1M ? '/1M' : ''}`;
}
