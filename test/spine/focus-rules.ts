/* The rules of FOCUS 1.2 for a row of usage and cost, from its specification (https://focus.finops.org). */

type Shape = 'text' | 'decimal' | 'time' | 'json' | readonly string[];
type Level = 'mandatory' | 'recommended' | 'conditional';

const LEVELS: readonly Level[] = ['mandatory', 'recommended', 'conditional'];
const NULL = true;
const NEVER_NULL = false;

/** Every mandatory column, and those of the others that are of a gateway, each with whether it may be null. */
const COLUMNS: Readonly<Record<Level, Readonly<Record<string, readonly [Shape, boolean]>>>> = {
  mandatory: {
    BilledCost: ['decimal', NEVER_NULL],
    BillingAccountId: ['text', NEVER_NULL],
    BillingAccountName: ['text', NULL],
    BillingCurrency: [['USD'], NEVER_NULL],
    BillingPeriodEnd: ['time', NEVER_NULL],
    BillingPeriodStart: ['time', NEVER_NULL],
    ChargeCategory: [['Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'], NEVER_NULL],
    ChargeClass: [['Correction'], NULL],
    ChargeDescription: ['text', NULL],
    ChargePeriodEnd: ['time', NEVER_NULL],
    ChargePeriodStart: ['time', NEVER_NULL],
    ContractedCost: ['decimal', NEVER_NULL],
    EffectiveCost: ['decimal', NEVER_NULL],
    InvoiceIssuerName: ['text', NEVER_NULL],
    ListCost: ['decimal', NEVER_NULL],
    PricingQuantity: ['decimal', NULL],
    PricingUnit: ['text', NULL],
    ProviderName: ['text', NEVER_NULL],
    PublisherName: ['text', NEVER_NULL],
    ServiceCategory: [['AI and Machine Learning'], NEVER_NULL],
    ServiceName: ['text', NEVER_NULL],
  },
  recommended: {
    ChargeFrequency: [['One-Time', 'Recurring', 'Usage-Based'], NEVER_NULL],
    InvoiceId: ['text', NULL],
    ServiceSubcategory: [['Generative AI', 'Bots', 'Other (AI and Machine Learning)'], NEVER_NULL],
  },
  conditional: {
    ConsumedQuantity: ['decimal', NULL],
    ConsumedUnit: ['text', NULL],
    ContractedUnitPrice: ['decimal', NULL],
    ListUnitPrice: ['decimal', NULL],
    PricingCategory: [['Standard', 'Dynamic', 'Committed', 'Other'], NULL],
    SkuId: ['text', NULL],
    SkuMeter: ['text', NULL],
    SkuPriceDetails: ['json', NULL],
    SkuPriceId: ['text', NULL],
    SubAccountId: ['text', NULL],
    SubAccountName: ['text', NULL],
    Tags: ['json', NULL],
  },
};

/** Null if and only if the row is no use: of a refund nothing is consumed or priced. */
const OF_USAGE =
  'ConsumedQuantity ConsumedUnit ContractedUnitPrice ListUnitPrice PricingCategory PricingQuantity PricingUnit SkuId SkuMeter SkuPriceId'.split(
    ' ',
  );

const PATTERNS = {
  text: /\S/,
  decimal: /^-?\d+(?:\.\d+)?$/,
  time: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
  json: /^\{.*\}$/s,
} as const;

type FocusCells = Readonly<Record<string, string | null>>;

/** How a row breaks the rules. */
export function focusFaults(row: FocusCells): readonly string[] {
  return [...faultsOfColumns(row), ...faultsOfRow(row)];
}

function faultsOfColumns(row: FocusCells): readonly string[] {
  const faults: string[] = [];
  for (const level of LEVELS)
    for (const [name, [shape, mayBeNull]] of Object.entries(COLUMNS[level])) {
      const value = row[name];
      if (value === undefined) faults.push(`the ${level} column ${name} is missing`);
      else if (value === null) {
        if (!mayBeNull) faults.push(`${name} is null`);
      } else if (typeof shape === 'string' ? !PATTERNS[shape].test(value) : !shape.includes(value))
        faults.push(`${name} is ${value}`);
    }
  const known = Object.assign({}, ...LEVELS.map((level) => COLUMNS[level])) as object;
  for (const name of Object.keys(row))
    if (!(name in known) && !/^x_[A-Z][A-Za-z]+$/.test(name)) faults.push(`${name} is no column of FOCUS, and no x_`);
  return faults;
}

function faultsOfRow(row: FocusCells): readonly string[] {
  const faults: string[] = [];
  const usage = row['ChargeCategory'] === 'Usage';
  for (const name of OF_USAGE)
    if ((row[name] !== null) !== usage) faults.push(`${name} is ${row[name]} in ${usage ? 'use' : 'a refund'}`);
  const { ChargePeriodStart: start, ChargePeriodEnd: end, BillingPeriodStart: from, BillingPeriodEnd: until } = row;
  if (!(from! <= start! && start! < end! && start! < until!)) faults.push(`the charge is from ${start} to ${end}`);
  for (const kind of ['List', 'Contracted']) {
    const [cost, price, quantity] = [`${kind}Cost`, `${kind}UnitPrice`, 'PricingQuantity'].map((name) => row[name]);
    const product = usage ? Number(price) * Number(quantity) : Number(row['BilledCost']);
    if (Math.abs(Number(cost) - product) > 1e-12) faults.push(`${kind}Cost is ${cost} and not ${product}`);
  }
  for (const [id, names] of Object.entries({ SubAccountId: ['SubAccountName'], SkuPriceId: ['SkuPriceDetails'] }))
    for (const name of names) if (row[id] === null && row[name] !== null) faults.push(`${name} is there without ${id}`);
  for (const name of ['Tags', 'SkuPriceDetails']) {
    const values = Object.values(JSON.parse(row[name] ?? '{}') as object) as readonly unknown[];
    if (values.some((value) => typeof value === 'object' && value !== null)) faults.push(`${name} is nested`);
  }
  return faults;
}
