import { listParam, loadStatements, type Query, type Row } from '#store';
import { escrowOf } from '#billing';
import { isPerMillion, type Meter, type Rates, offerId } from '#billing/amounts';
import { consumerOf, type CostLine, costLines, ratesFromText, usageFromText } from '#billing/resolved';
import { resolvedCalls, type TimeRange } from './account-calls.ts';
import { fieldsOf, nameOf, textOf } from './call-facts.ts';
import { tagsOf } from './statement.ts';

/* Usage and cost in the columns of FOCUS 1.2, the FinOps Open Cost and Usage Specification
   (https://focus.finops.org/focus-specification/v1-2/). docs/reference/figures.md says what our columns have. */

/** The columns in their order: those of the specification, and after them our own. */
export const FOCUS_COLUMNS = [
  'BilledCost',
  'BillingAccountId',
  'BillingAccountName',
  'BillingCurrency',
  'BillingPeriodEnd',
  'BillingPeriodStart',
  'ChargeCategory',
  'ChargeClass',
  'ChargeDescription',
  'ChargeFrequency',
  'ChargePeriodEnd',
  'ChargePeriodStart',
  'ConsumedQuantity',
  'ConsumedUnit',
  'ContractedCost',
  'ContractedUnitPrice',
  'EffectiveCost',
  'InvoiceId',
  'InvoiceIssuerName',
  'ListCost',
  'ListUnitPrice',
  'PricingCategory',
  'PricingQuantity',
  'PricingUnit',
  'ProviderName',
  'PublisherName',
  'ServiceCategory',
  'ServiceName',
  'ServiceSubcategory',
  'SkuId',
  'SkuMeter',
  'SkuPriceDetails',
  'SkuPriceId',
  'SubAccountId',
  'SubAccountName',
  'Tags',
  'x_CallId',
] as const;
/** Numbers are decimal texts. null is an empty cell. */
export type FocusRow = Readonly<Record<(typeof FOCUS_COLUMNS)[number], string | null>>;

interface FocusQuery extends TimeRange {
  /** Without the `escrow:` prefix. */
  readonly account: string;
  readonly accountName: string | null;
  /** The name of the gateway, which sells and issues the invoice. */
  readonly issuer: string;
  /** Labels of keys, by hash. */
  readonly keyNames: ReadonlyMap<string, string>;
}

const SQL = loadStatements(import.meta.url, '../sql/statement.sql', ['refundsBetween', 'escrowAccounts']);
const PRICES = loadStatements(import.meta.url, '../sql/archive.sql', ['findManyPrices']);

const MICRO_PLACES = 6;
/** Places of a unit price of one unit, and of a product of a rate and units. */
const RATE_PLACES = 12;
const MILLION = 1_000_000n;

/**
 * The rows of an account for a month, in pages. A charged call has a row for each meter that has a price, and a refund
 * has one. `BilledCost` of all of them sums to what calls were charged less what was refunded, exactly.
 */
export async function* focusRows(query: Query, month: FocusQuery): AsyncGenerator<readonly FocusRow[]> {
  const rates = new Map<string, Rates>();
  for await (const calls of resolvedCalls(query, month.account, month)) {
    const charged = calls.filter((row) => (row['charged'] as bigint) > 0n);
    const missing = charged.map((row) => row['price'] as string).filter((id) => !rates.has(id));
    if (missing.length > 0) await readRates(query, [...new Set(missing)], rates);
    yield charged.flatMap((row) => rowsOfCall(row, rates.get(row['price'] as string), month));
  }
  const refunds = await query(SQL.refundsBetween, [escrowOf(month.account), month.from, month.until]);
  if (refunds.length > 0) yield refunds.map((row) => rowOfRefund(row, month));
}

/** Accounts after `account` in their order, at most `limit`. */
export async function accountsAfter(query: Query, account: string, limit: number): Promise<readonly string[]> {
  const rows = await query(SQL.escrowAccounts, [escrowOf(account), limit]);
  return rows.map((row) => consumerOf(row['id'] as string)!);
}

async function readRates(query: Query, ids: readonly string[], rates: Map<string, Rates>): Promise<void> {
  for (const row of await query(PRICES.findManyPrices, [listParam(ids)]))
    rates.set(row['id'] as string, ratesFromText(row['rates'] as string));
}

/** JSON whose texts have no signs that separate cells: as escapes, they are no part of a formula and mean the same. */
const tagsCell = (call: ReturnType<typeof fieldsOf>): string =>
  JSON.stringify(tagsOf(call['tags'])).replace(/[;|]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);

function rowsOfCall(row: Row, rates: Rates | undefined, month: FocusQuery): readonly FocusRow[] {
  const [call, run] = [fieldsOf(row['lock_detail'] as string), fieldsOf(row['detail'] as string | null)];
  const charged = row['charged'] as bigint;
  const price = row['price'] as string;
  const lines = rates === undefined ? [] : costLines(rates, usageFromText((row['usage'] as string | null) ?? '{}'));
  const priced = lines.length > 0 ? lines : [{ meter: 'call', units: 1n, rate: charged * MILLION } as const];
  const service = textOf(run['service']) || nameOf(textOf(call['service']));
  const provider = (row['provider'] as string | null) ?? '';
  const primitive = textOf(call['primitive']);
  const key = textOf(call['key']);
  const offer = offerId({ primitive, provider, service });
  const shared = {
    ...sharedCells(month, Number(row['resolved_at'])),
    ChargeCategory: 'Usage',
    ChargeClass: null,
    ChargeFrequency: 'Usage-Based',
    PricingCategory: 'Standard',
    PublisherName: textOf(run['providerName']) || provider || month.issuer,
    ServiceName: service,
    ServiceSubcategory: SUBCATEGORIES[primitive] ?? 'Other (AI and Machine Learning)',
    SubAccountId: key || null,
    SubAccountName: month.keyNames.get(key) ?? null,
    Tags: tagsCell(call),
    x_CallId: row['id'] as string,
  };
  const parts = partsOf(charged, priced);
  return priced.map((line, index): FocusRow => {
    const { meter, units, rate } = line;
    const million = isPerMillion(meter);
    const unitPrice = decimal(rate, million ? MICRO_PLACES : RATE_PLACES);
    const cost = decimal(units * rate, RATE_PLACES);
    const billed = decimal(parts[index]!, MICRO_PLACES);
    return {
      ...shared,
      BilledCost: billed,
      EffectiveCost: billed,
      ChargeDescription: `${service}: ${METER_NAMES[meter]}`,
      ConsumedQuantity: `${units}`,
      ConsumedUnit: unitOf(meter),
      ContractedCost: cost,
      ContractedUnitPrice: unitPrice,
      ListCost: cost,
      ListUnitPrice: unitPrice,
      PricingQuantity: decimal(units, million ? MICRO_PLACES : 0),
      PricingUnit: million ? `1000000 ${unitOf(meter)}` : unitOf(meter),
      SkuId: `${offer}/${meter}`,
      SkuMeter: METER_NAMES[meter],
      SkuPriceDetails: null,
      SkuPriceId: `${price}/${meter}`,
    };
  });
}

/**
 * The parts of a charge that its meters have, in whole micro-USD. They sum to the charge: the last one has the rest of
 * the rounding, and a charge that was cut is cut alike everywhere.
 */
function partsOf(charged: bigint, lines: readonly CostLine[]): readonly bigint[] {
  const whole = lines.reduce((sum, { units, rate }) => sum + units * rate, 0n);
  let rest = charged;
  return lines.map(({ units, rate }, index) => {
    const part = index === lines.length - 1 ? rest : (charged * units * rate) / whole;
    rest -= part;
    return part;
  });
}

function rowOfRefund(row: Row, month: FocusQuery): FocusRow {
  const at = Number(row['at']);
  const ended = row['resolved_at'] === null ? null : Number(row['resolved_at']);
  const call = fieldsOf(row['lock_detail'] as string | null);
  const run = fieldsOf(row['detail'] as string | null);
  const key = textOf(call['key']);
  const billed = decimal(-(row['amount'] as bigint), MICRO_PLACES);
  return {
    ...sharedCells(month, at),
    BilledCost: billed,
    EffectiveCost: billed,
    ListCost: billed,
    ContractedCost: billed,
    ChargeCategory: 'Credit',
    // A call that is not a row any more is in an archive, so it is of an earlier month.
    ChargeClass: ended === null || ended < month.from ? 'Correction' : null,
    ChargeDescription: `Refund: ${row['memo'] as string}`,
    ChargeFrequency: 'One-Time',
    ConsumedQuantity: null,
    ConsumedUnit: null,
    ContractedUnitPrice: null,
    ListUnitPrice: null,
    PricingCategory: null,
    PricingQuantity: null,
    PricingUnit: null,
    PublisherName: textOf(run['providerName']) || month.issuer,
    ServiceName: textOf(run['service']) || nameOf(textOf(call['service'])) || 'Archived call',
    ServiceSubcategory: SUBCATEGORIES[textOf(call['primitive'])] ?? 'Other (AI and Machine Learning)',
    SkuId: null,
    SkuMeter: null,
    SkuPriceDetails: null,
    SkuPriceId: null,
    SubAccountId: key || null,
    SubAccountName: month.keyNames.get(key) ?? null,
    Tags: tagsCell(call),
    x_CallId: (row['id'] as string).slice('refund:'.length),
  };
}

const sharedCells = ({ account, accountName, issuer, from, until }: FocusQuery, at: number) => ({
  BillingAccountId: account,
  BillingAccountName: accountName,
  BillingCurrency: 'USD',
  BillingPeriodStart: secondOf(from),
  BillingPeriodEnd: secondOf(until),
  ChargePeriodStart: secondOf(at),
  ChargePeriodEnd: secondOf(at + SECOND_MS),
  // Accounts pay before their calls, so there is no invoice.
  InvoiceId: null,
  InvoiceIssuerName: issuer,
  ProviderName: issuer,
  ServiceCategory: 'AI and Machine Learning',
});

const SECOND_MS = 1_000;
/** `YYYY-MM-DDTHH:mm:ssZ` */
const secondOf = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

/** A whole number of units of 10^-places as decimal text, exactly. */
function decimal(value: bigint, places: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(places + 1, '0');
  const whole = digits.slice(0, digits.length - places);
  let end = digits.length;
  while (end > whole.length && digits[end - 1] === '0') end -= 1;
  const fraction = digits.slice(whole.length, end);
  return `${value < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

const SUBCATEGORIES: Readonly<Record<string, string>> = {
  model: 'Generative AI',
  image: 'Generative AI',
  video: 'Generative AI',
  agent: 'Bots',
};

const METER_NAMES: Readonly<Record<Meter, string>> = {
  prompt: 'Input tokens',
  completion: 'Output tokens',
  image: 'Images',
  second: 'Seconds',
  call: 'Calls',
  input_image: 'Input images',
  input_cache_read: 'Input tokens read from a cache',
  input_cache_write: 'Input tokens written to a cache',
  input_cache_write_1h: 'Input tokens written to a cache for an hour',
  audio: 'Input tokens of audio',
  input_audio_cache: 'Input tokens of audio read from a cache',
  internal_reasoning: 'Output tokens of reasoning',
  audio_output: 'Output tokens of audio',
  image_output: 'Output tokens of images',
  web_search: 'Web searches',
  character: 'Characters',
};

function unitOf(meter: Meter): string {
  if (meter === 'image' || meter === 'input_image') return 'Images';
  if (meter === 'second') return 'Seconds';
  if (meter === 'call') return 'Requests';
  if (meter === 'web_search') return 'Searches';
  return meter === 'character' ? 'Characters' : 'Tokens';
}
