import { isDeepStrictEqual } from 'node:util';
import type { Meter, MeterRates, MicroUsd, PriceTier, Rates } from '#billing/amounts';
import { option, type Option } from '../option.ts';
import { show, WrongValue } from '../problem.ts';
import { isTable } from '../reading.ts';
import type { Table } from '../toml.ts';
import { formatRate, type PriceBounds, readPrice } from './price.ts';

/* Prices of a model by the length of the prompt and the service tier, and what offers cost the operator. */

/** The prices that a tier may name, by their keys. */
type TierPrices = Readonly<Record<string, PriceBounds>>;

interface NamedRates {
  readonly rates: MeterRates;
}

/** A tier as it is written: only the rates that it names. */
interface WrittenTier extends NamedRates {
  readonly above: number;
}

interface WrittenServiceTier extends NamedRates {
  readonly tiers: readonly WrittenTier[];
}

const TIERS_MAX = 8;
const PROMPT_MAX = 100_000_000;
const TIER_NAME = /^[a-z][a-z0-9_-]{0,31}$/;
/** Names of the tier that a model has anyway, in the words of several APIs. */
const DEFAULT_NAMES: ReadonlySet<string> = new Set([
  'auto',
  'default',
  'standard',
  'standard_only',
  'on_demand',
  'scale',
]);

/** Whether a name means the tier of a call that names none. */
export const isDefaultTier = (name: string): boolean => DEFAULT_NAMES.has(name);

const TIERS_RIGHT =
  'a list of tables such as { above = 200000, prompt = 2.5, completion = 15 }, each with a higher above than the one before';

export function priceTiers(prices: TierPrices): Option<readonly WrittenTier[] | null> {
  return option<readonly WrittenTier[] | null>({
    takes: `list of at most ${TIERS_MAX} tables with \`above\` and prices`,
    meaning:
      'Other prices for a request whose prompt has more than `above` tokens, those of a cache included. They are the prices of the whole request. ' +
      'A price that a tier does not name is that of the tier before it, in the first that of `pricing`.',
    optional: { text: 'none', fallback: null },
    read: (value) => readTiers(value, prices, ''),
  });
}

export function serviceTiers(prices: TierPrices): Option<Readonly<Record<string, WrittenServiceTier>> | null> {
  const right = 'a table of tables such as { flex = { prompt = 1, completion = 5 } }';
  return option<Readonly<Record<string, WrittenServiceTier>> | null>({
    takes: `table of at most ${TIERS_MAX} tables with prices and \`tiers\`, by the name of the tier`,
    meaning:
      'Prices for calls with `service_tier`, such as `flex` or `priority`. A price that a service tier does not name is that of `pricing`, but its `tiers` are its own. ' +
      'A call costs the tier that it asked for, or the tier that the reply names if that comes to less.',
    optional: { text: 'none', fallback: null },
    read(value) {
      if (!isTable(value)) throw new WrongValue(`is ${show(value)}`, right);
      const entries = Object.entries(value);
      if (entries.length > TIERS_MAX) throw new WrongValue(`has ${entries.length} tiers`, `at most ${TIERS_MAX}`);
      const read = entries.map(([name, table]) => {
        const path = `${show(name)}: `;
        if (!TIER_NAME.test(name))
          throw new WrongValue(`has the tier ${show(name)}`, 'names of 1 to 32 letters a-z, digits, _ and -');
        if (isDefaultTier(name))
          throw new WrongValue(`has the tier ${show(name)}`, 'other names: this one means the prices of `pricing`');
        if (!isTable(table)) throw new WrongValue(`${path}is ${show(table)}`, right);
        const { tiers, ...rates } = table;
        return [
          name,
          {
            rates: readRates(rates, prices, path, ['tiers']),
            tiers: tiers === undefined ? [] : readTiers(tiers, prices, path),
          },
        ] as const;
      });
      return read.length === 0 ? null : Object.fromEntries(read);
    },
  });
}

/** The rates that the operator pays for the calls of an offer. */
export interface OfferCost {
  readonly rates: Rates;
  readonly serviceTiers: Readonly<Record<string, Rates>>;
  /**
   * Those that differ from `rates`: of tools by their names, of images and videos by their variants (`1K/high`,
   * `720p+audio`). A variant without its own has those of the one above it (`1K`).
   */
  readonly variants?: Readonly<Record<string, Rates>>;
}

const COST_MEANING =
  "What the vendor charges you, in the units of `pricing`. It is not shown, and books nothing: the operator's margin is computed from it";
const NO_TUNNEL = 'It has no effect for a provider that dials in.';

/** The rates that the vendor of a model charges, in one table with the keys of `pricing`. */
export function modelCost(prices: TierPrices): Option<OfferCost | null> {
  const readServiceTiers = serviceTiers(prices).read;
  return option<OfferCost | null>({
    takes: 'table with keys of `pricing`, also `tiers` and `service_tiers`',
    meaning: `${COST_MEANING}, and [\`tollgate reconcile\`](run/reconcile.md) compares it with the bill. Without \`prompt\` or \`completion\` their tokens cost nothing. ${NO_TUNNEL}`,
    optional: { text: 'the list price for a model of `[[providers]]`, else unknown', fallback: null },
    read(value) {
      const { tiers, service_tiers: written, ...fields } = costTable(value, '{ prompt = 2.5, completion = 10 }');
      const base = { prompt: 0n, completion: 0n, ...readRates(fields, prices, '', ['tiers', 'service_tiers']) };
      return {
        rates: { ...base, ...completeTiers(base, tiers === undefined ? null : readTiers(tiers, prices, '')) },
        serviceTiers: completeServiceTiers(base, written === undefined ? null : readServiceTiers(written)),
      };
    },
  });
}

/** The keys of a cost: single costs, and tables of costs by name. */
interface CostKeys {
  readonly prices: TierPrices;
  readonly tables?: Readonly<Record<string, NamedCosts>>;
  /** Keys of another form. */
  readonly others?: readonly string[];
  /** Adds to the documentation how calls get their cost. */
  readonly meaning?: string;
  readonly example: string;
}

interface NamedCosts {
  readonly bounds: PriceBounds;
  /** The names, to follow "a table of". */
  readonly takes: string;
  readonly fault: (name: string) => string | null;
  readonly max: number;
}

/** Costs as they are written: single ones by their keys, and those of tables by their names. */
interface WrittenCosts {
  readonly single: Readonly<Record<string, MicroUsd>>;
  readonly byName: Readonly<Record<string, Readonly<Record<string, MicroUsd>>>>;
  readonly others: Table;
}

/** The rates that the vendor of a service other than a model charges, in one table with keys of `pricing`. */
export function tableCost(
  { prices, tables = {}, others = [], meaning = '', example }: CostKeys,
  toCost: (written: WrittenCosts) => Omit<OfferCost, 'serviceTiers'>,
): Option<OfferCost | null> {
  const keys = [...others, ...Object.keys(tables), ...Object.keys(prices)];
  const also = [...Object.keys(tables), ...others].map((key) => `\`${key}\``).join(' and ');
  return option<OfferCost | null>({
    takes: `table with keys of \`pricing\`${also === '' ? '' : `, also ${also}`}`,
    meaning: `${COST_MEANING}. ${meaning}${NO_TUNNEL}`,
    optional: { text: 'unknown', fallback: null },
    read(value) {
      const table = costTable(value, example);
      const single: Record<string, MicroUsd> = {};
      const byName: Record<string, Readonly<Record<string, MicroUsd>>> = {};
      for (const [key, cost] of Object.entries(table)) {
        if (Object.hasOwn(tables, key)) byName[key] = readNamedCosts(key, cost, tables[key]!);
        else if (Object.hasOwn(prices, key)) single[key] = readAt(key, cost, prices[key]!);
        else if (!others.includes(key)) throw new WrongValue(`has ${show(key)}`, `one of ${keys.join(', ')}`);
      }
      if (Object.keys(single).length === 0 && Object.keys(byName).length === 0)
        throw new WrongValue('has no cost', `one of ${keys.join(', ')}`);
      return { ...toCost({ single, byName, others: table }), serviceTiers: {} };
    },
  });
}

/** Throws WrongValue, which names the key. */
function readAt(key: string, cost: unknown, bounds: PriceBounds): MicroUsd {
  try {
    return readPrice(cost, bounds);
  } catch (error) {
    if (error instanceof WrongValue) throw new WrongValue(`${key} ${error.message}`, error.right);
    throw error;
  }
}

function readNamedCosts(
  key: string,
  value: unknown,
  { bounds, takes, fault, max }: NamedCosts,
): Readonly<Record<string, MicroUsd>> {
  const right = `a table of ${takes} with USD per ${bounds.unit}, at most ${max} and at least one`;
  const count = isTable(value) ? Object.keys(value).length : 0;
  if (!isTable(value) || count === 0 || count > max) throw new WrongValue(`has ${key} = ${show(value)}`, right);
  return Object.fromEntries(
    Object.entries(value).map(([name, cost]) => {
      const wrong = fault(name);
      if (wrong !== null) throw new WrongValue(`has ${show(name)} in ${key}: it ${wrong}`, right);
      return [name, readAt(`${key}.${name}`, cost, bounds)] as const;
    }),
  );
}

/** The rates that the vendor of a tool or an agent charges. `tools`: the costs of single tools, by their names. */
export const callsCost = (prices: TierPrices, tools?: NamedCosts): Option<OfferCost | null> =>
  tableCost(
    { prices, ...(tools === undefined ? {} : { tables: { tools } }), example: '{ per_call = 0.002 }' },
    ({ single, byName }) => {
      if (single['per_call'] !== undefined && single['per_task'] !== undefined)
        throw new WrongValue('has per_call and per_task', 'one of the two');
      const base: MeterRates = Object.fromEntries(
        Object.entries(single).map(([key, cost]) => [prices[key]!.meter, cost] as const),
      );
      const complete = Object.entries(byName['tools'] ?? {}).map(([name, call]) => [name, { ...base, call }] as const);
      return { rates: base, ...(complete.length > 0 && { variants: Object.fromEntries(complete) }) };
    },
  );

function costTable(value: unknown, example: string): Table {
  if (!isTable(value))
    throw new WrongValue(`is ${show(value)}`, `a table with the keys of pricing, such as ${example}`);
  return value;
}

/** Reads tiers. `path` is the beginning of messages, which names the table. Throws WrongValue. */
function readTiers(value: unknown, prices: TierPrices, path: string): readonly WrittenTier[] {
  if (!Array.isArray(value)) throw new WrongValue(`${path}is ${show(value)}`, TIERS_RIGHT);
  if (value.length > TIERS_MAX) throw new WrongValue(`${path}has ${value.length} tiers`, `at most ${TIERS_MAX}`);
  let last = 0;
  return (value as readonly unknown[]).map((one) => {
    if (!isTable(one)) throw new WrongValue(`${path}has ${show(one)}`, TIERS_RIGHT);
    const { above, ...fields } = one;
    if (typeof above !== 'number' || !Number.isInteger(above) || above <= last || above > PROMPT_MAX)
      throw new WrongValue(
        above === undefined ? `${path}has a tier without above` : `${path}has a tier with above = ${show(above)}`,
        `a whole number of tokens from ${last + 1} to ${PROMPT_MAX}`,
      );
    last = above;
    const rates = readRates(fields, prices, `${path}above ${above}: `, ['above']);
    if (Object.keys(rates).length === 0)
      throw new WrongValue(`${path}has no prices above ${above}`, `one of ${Object.keys(prices).join(', ')}`);
    return { above, rates };
  });
}

function readRates(table: Table, prices: TierPrices, path: string, besides: readonly string[]): MeterRates {
  const rates: Partial<Record<Meter, MicroUsd>> = {};
  for (const [key, value] of Object.entries(table)) {
    const bounds = Object.hasOwn(prices, key) ? prices[key] : undefined;
    if (bounds === undefined)
      throw new WrongValue(`${path}has ${show(key)}`, `one of ${[...besides, ...Object.keys(prices)].join(', ')}`);
    rates[bounds.meter] = readAt(`${path}${key}`, value, bounds);
  }
  return rates;
}

/** The tiers with complete rates. A tier that changes no rate is left out. */
export function completeTiers(base: MeterRates, written: readonly WrittenTier[] | null): Pick<Rates, 'tiers'> {
  const tiers: PriceTier[] = [];
  let before = base;
  for (const { above, rates } of written ?? []) {
    const complete = { ...before, ...rates };
    if (isDeepStrictEqual(complete, before)) continue;
    before = complete;
    tiers.push({ above: BigInt(above), rates: complete });
  }
  return tiers.length === 0 ? {} : { tiers };
}

/** The rates of each service tier, complete. */
export const completeServiceTiers = (
  base: MeterRates,
  written: Readonly<Record<string, WrittenServiceTier>> | null,
): Readonly<Record<string, Rates>> =>
  Object.fromEntries(
    Object.entries(written ?? {}).map(([name, { rates, tiers }]) => {
      const complete = { ...base, ...rates };
      return [name, { ...complete, ...completeTiers(complete, tiers) }];
    }),
  );

/** The inverse of completeTiers: each tier with the rates that differ from those before it; undefined for none. */
export function writeTiers(base: MeterRates, tiers: Rates['tiers'], prices: TierPrices): readonly Table[] | undefined {
  let before = base;
  return tiers?.map(({ above, rates }) => {
    const rateFields = writeRates(before, rates, prices);
    before = rates;
    return { above: Number(above), ...rateFields };
  });
}

/** The inverse of completeServiceTiers; undefined for none. */
export function writeServiceTiers(
  base: MeterRates,
  variants: Readonly<Record<string, Rates>>,
  prices: TierPrices,
): Table | undefined {
  const entries = Object.entries(variants).map(([name, rates]) => {
    const tiers = writeTiers(rates, rates.tiers, prices);
    return [name, { ...writeRates(base, rates, prices), ...(tiers === undefined ? {} : { tiers }) }] as const;
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

const writeRates = (before: MeterRates, rates: MeterRates, prices: TierPrices): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(prices).flatMap(([key, bounds]) => {
      const rate = rates[bounds.meter];
      return rate === undefined || rate === before[bounds.meter] ? [] : [[key, formatRate(rate, bounds)]];
    }),
  );
