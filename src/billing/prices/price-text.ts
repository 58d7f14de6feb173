import { isPerMillion, METERS, type Meter, type MeterRates } from './meters.ts';
import { formatUsd, MoneyError, parseUsd, toUsdNumber, type MicroUsd } from './money.ts';
import type { PriceTier, Rates, Usage } from './price.ts';

const UNITS = 1_000_000n;

/**
 * Parses prices as providers write them: USD per 1M for tokens, USD per unit for the others.
 * Throws MoneyError that names the meter. Unknown meters are refused.
 */
export function parseRates(pricing: Readonly<Record<string, unknown>>): MeterRates {
  const rates: Partial<Record<Meter, MicroUsd>> = {};
  for (const [name, value] of Object.entries(pricing)) {
    if (value === undefined || value === null) continue;
    if (!isMeter(name)) throw new MoneyError(`pricing.${name} is not a price; prices are ${METERS.join(', ')}`);
    const amount = parseUsd(value, `pricing.${name}`);
    rates[name] = isPerMillion(name) ? amount : amount * UNITS;
  }
  return rates;
}

const isMeter = (name: string): name is Meter => (METERS as readonly string[]).includes(name);

/**
 * The inverse of parseRates, for display: USD per 1M for tokens, USD per unit for the others.
 */
export function ratesToUsd(rates: MeterRates): Partial<Record<Meter, number>> {
  const usd: Partial<Record<Meter, number>> = {};
  for (const meter of METERS) {
    const rate = rates[meter];
    if (rate !== undefined) usd[meter] = toUsdNumber(isPerMillion(meter) ? rate : rate / UNITS);
  }
  return usd;
}

/** Micro-USD for a minute at a rate of seconds, which was rounded down if the minute's price has no whole sixtieth. */
export const perMinute = (second: MicroUsd): MicroUsd => (second * 60n + UNITS - 1n) / UNITS;

/** A rate in the unit in which the file has it, in USD. A model has the price of a minute of sound. */
export const rateInFile = (primitive: string, meter: Meter, rate: MicroUsd): string =>
  formatUsd(
    primitive === 'model' && meter === 'second' ? perMinute(rate) : isPerMillion(meter) ? rate : rate / 1_000_000n,
  );

/**
 * USD for one unit of a meter as an exact decimal text: a rate of 150,000 (0.15 USD per 1M tokens) is "0.00000015"
 * a token.
 */
export function unitUsd(rate: MicroUsd): string {
  const digits = rate.toString().padStart(13, '0');
  const fraction = digits.slice(-12).replace(/0+$/, '');
  return digits.slice(0, -12) + (fraction ? `.${fraction}` : '');
}

/**
 * Rates as a JSON object of decimal strings, the form in which a price version is stored. The rates of a tier are
 * members such as `prompt>200000`, so that a version that knows no tiers can read all members as amounts.
 */
export function ratesToJson(rates: Rates): Record<string, string> {
  const members = (at: MeterRates, suffix: string) =>
    METERS.filter((meter) => at[meter] !== undefined).map((meter) => [meter + suffix, at[meter]!.toString()]);
  return Object.fromEntries([
    ...members(rates, ''),
    ...(rates.tiers ?? []).flatMap(({ above, rates: at }) => members(at, `>${above}`)),
  ]) as Record<string, string>;
}

/** The inverse of ratesToJson. Members of newer versions, which are no meters, are kept out of the rates. */
export function ratesFromJson(json: Readonly<Record<string, string>>): Rates {
  const rates: Partial<Record<Meter, MicroUsd>> = {};
  const tiers = new Map<string, Partial<Record<Meter, MicroUsd>>>();
  for (const [name, value] of Object.entries(json)) {
    const [meter = '', above] = name.split('>');
    if (!isMeter(meter)) continue;
    let at = rates;
    if (above !== undefined) {
      at = tiers.get(above) ?? {};
      tiers.set(above, at);
    }
    at[meter] = BigInt(value);
  }
  if (tiers.size === 0) return rates;
  const sorted = [...tiers]
    .map(([above, at]): PriceTier => ({ above: BigInt(above), rates: at }))
    .sort((a, b) => (a.above < b.above ? -1 : 1));
  return { ...rates, tiers: sorted };
}

/** Usage as JSON text, the form that a generation stores: `{"prompt":12,"completion":34}`. */
export function usageToText(usage: Usage): string {
  let text = '';
  for (const meter of METERS) {
    const units = usage[meter];
    if (units !== undefined) text += `${text === '' ? '' : ','}"${meter}":${units}`;
  }
  return `{${text}}`;
}

export function usageFromText(text: string): Usage {
  return Object.fromEntries(
    Object.entries(JSON.parse(text) as Record<string, number>).map(([meter, units]) => [meter, BigInt(units)]),
  );
}
