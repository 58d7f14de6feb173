import { modelKey, toMicro, type VendorRow } from './vendor-row.ts';

/** A row of `GET /admin/v1/reconciliation`. Money is micro-USD. */
export interface OwnRow {
  readonly date: string;
  readonly model: string;
  readonly service: string;
  readonly provider: string;
  readonly offered: boolean;
  readonly requests: number;
  readonly free: number;
  readonly measured: number;
  readonly claims: number;
  readonly refused: number;
  readonly broken: number;
  readonly aborted: number;
  readonly own_keys: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly reasoning_tokens: number;
  readonly charged_micro_usdc: number;
  readonly fee_micro_usdc: number;
  readonly cost_micro_usd: number | null;
}

/** Sums of a vendor's export. null: the export does not have the figure. `cost` is micro-USD. */
export interface Billed {
  readonly requests: number | null;
  readonly prompt: number | null;
  readonly completion: number | null;
  readonly cached: number | null;
  readonly reasoning: number | null;
  readonly cost: number | null;
}

/** Sums of the calls here. `cost` is null if one of the offers has none; `charged` and `cost` are micro-USD. */
export interface Settled {
  readonly requests: number;
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  readonly reasoning: number;
  readonly cost: number | null;
  readonly charged: number;
  readonly free: number;
  readonly measured: number;
  readonly claims: number;
  readonly broken: number;
  readonly refused: number;
  readonly aborted: number;
  readonly ownKeys: number;
}

/** Both sides of one day and model, or of a sum. */
export interface Compared {
  /** null: all days. */
  readonly date: string | null;
  /** Without the date of its version. null: all models. */
  readonly model: string | null;
  /** null: the export has no row. */
  readonly billed: Billed | null;
  /** null: there is no call here. */
  readonly settled: Settled | null;
  /** The largest share by which a figure that both sides have differs, from 0 to 1. */
  readonly difference: number;
  readonly isBeyond: boolean;
  /** Micro-USD: the charge less the vendor's bill, or else less the cost by the offer. null if neither is known. */
  readonly margin: number | null;
}

export interface Comparison {
  readonly lines: readonly Compared[];
  readonly models: readonly Compared[];
  readonly totals: Compared;
  /** The share beyond which a difference is told. */
  readonly bound: number;
  /** Whether a model over all days, or the total, differs by more than the bound. */
  readonly isBeyond: boolean;
  /** Whether calls or tokens were compared, and whether costs were. Only what both sides have can be. */
  readonly compared: { readonly use: boolean; readonly costs: boolean };
}

/** Compares an export with the calls here. `bound` is a share from 0 to 1. */
export function compare(vendor: readonly VendorRow[], own: readonly OwnRow[], bound: number): Comparison {
  const modelRows = vendor.filter((row) => row.model !== null);
  const otherRows = vendor.filter((row) => row.model === null);
  const keyOf = (date: string, model: string) => `${date} ${model}`;
  const billed = groupBy(modelRows, ({ day, model }) => keyOf(day, modelKey(model!)));
  const settled = groupBy(own, ({ date, model }) => keyOf(date, modelKey(model)));
  const lines = [...new Set([...billed.keys(), ...settled.keys()])].sort().map((key) => {
    const [date, model] = [key.slice(0, 10), key.slice(11)];
    return compared({ date, model }, billed.get(key) ?? [], settled.get(key) ?? [], bound);
  });
  const byDay = groupBy(own, ({ date }) => date);
  const ofDays = [...groupBy(otherRows, ({ day }) => day)]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([date, rows]) => compared({ date, model: null }, rows, byDay.get(date) ?? [], bound));
  const ofModel = groupBy(modelRows, ({ model }) => modelKey(model!));
  const hereOfModel = groupBy(own, ({ model }) => modelKey(model));
  // An export that names no model cannot lack one.
  const modelNames = modelRows.length === 0 ? [] : [...new Set([...ofModel.keys(), ...hereOfModel.keys()])].sort();
  const models = modelNames.map((model) =>
    compared({ date: null, model }, ofModel.get(model) ?? [], hereOfModel.get(model) ?? [], bound),
  );
  const totals = compared({ date: null, model: null }, vendor, own, bound);
  return {
    lines: modelRows.length === 0 ? ofDays : [...lines, ...ofDays],
    models,
    totals,
    bound,
    isBeyond: totals.isBeyond || models.some(({ isBeyond }) => isBeyond),
    compared: comparedIn(totals),
  };
}

function compared(
  { date, model }: Pick<Compared, 'date' | 'model'>,
  vendor: readonly VendorRow[],
  own: readonly OwnRow[],
  bound: number,
): Compared {
  const billed = vendor.length === 0 ? null : sumBilled(vendor);
  const settled = own.length === 0 ? null : sumSettled(own);
  const difference = differenceOf(billed, settled);
  const paid = billed?.cost ?? settled?.cost ?? null;
  return {
    date,
    model,
    billed,
    settled,
    difference,
    isBeyond: difference > bound,
    margin: paid === null ? null : (settled?.charged ?? 0) - paid,
  };
}

function sumBilled(rows: readonly VendorRow[]): Billed {
  const sum = (name: 'requests' | 'prompt' | 'completion' | 'cached' | 'reasoning') => {
    const known = rows.map((row) => row[name]).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((total, value) => total + value, 0);
  };
  const costs = rows.map(({ cost }) => cost).filter((value) => value !== null);
  return {
    requests: sum('requests'),
    prompt: sum('prompt'),
    completion: sum('completion'),
    cached: sum('cached'),
    reasoning: sum('reasoning'),
    cost: costs.length === 0 ? null : Number(toMicro(costs.reduce((total, value) => total + value, 0n))),
  };
}

function sumSettled(rows: readonly OwnRow[]): Settled {
  const sum = (name: NumberOf) => rows.reduce((total, row) => total + row[name], 0);
  const isKnown = rows.every((row) => row.cost_micro_usd !== null || row.requests === 0);
  return {
    requests: sum('requests'),
    prompt: sum('prompt_tokens'),
    completion: sum('completion_tokens'),
    cached: sum('cached_tokens'),
    reasoning: sum('reasoning_tokens'),
    cost: isKnown ? rows.reduce((total, row) => total + (row.cost_micro_usd ?? 0), 0) : null,
    charged: sum('charged_micro_usdc'),
    free: sum('free'),
    measured: sum('measured'),
    claims: sum('claims'),
    broken: sum('broken'),
    refused: sum('refused'),
    aborted: sum('aborted'),
    ownKeys: sum('own_keys'),
  };
}
type NumberOf = { [Name in keyof OwnRow]: OwnRow[Name] extends number ? Name : never }[keyof OwnRow];

const NOTHING = { requests: 0, prompt: 0, completion: 0, cost: 0 };

/** The shares by which the figures differ; null for one that a side does not have. */
function differencesOf(billed: Billed | null, settled: Settled | null) {
  const here = settled ?? NOTHING;
  // Without a row in the export its figures are 0: the vendor billed nothing.
  const there = billed ?? NOTHING;
  const differenceIn = (name: keyof typeof NOTHING) => {
    const [one, other] = [there[name], here[name]];
    return one === null || other === null ? null : share(one, other);
  };
  return {
    use: [differenceIn('requests'), differenceIn('prompt'), differenceIn('completion')],
    cost: differenceIn('cost'),
  };
}

function differenceOf(billed: Billed | null, settled: Settled | null): number {
  const { use, cost } = differencesOf(billed, settled);
  return Math.max(0, ...[...use, cost].filter((one) => one !== null));
}

function comparedIn({ billed, settled }: Compared): Comparison['compared'] {
  const { use, cost } = differencesOf(billed, settled);
  return { use: use.some((one) => one !== null), costs: cost !== null };
}

/** The part of the larger amount by which the other one is smaller. */
const share = (one: number, other: number): number =>
  one === other ? 0 : Math.abs(one - other) / Math.max(Math.abs(one), Math.abs(other));

function groupBy<T>(rows: readonly T[], keyOf: (row: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return groups;
}
