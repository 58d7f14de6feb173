import {
  formatUsd,
  type Ledger,
  type LockRecord,
  type MicroUsd,
  type PriceBook,
  type Refund,
  type Refunds,
  toUsdNumber,
  unitUsd,
} from '#billing';
import { objectOf } from '../route-schemas.ts';
import {
  callProperties,
  callSchema,
  type CallView,
  micro,
  otherClientsSchema,
  readCounts,
  viewCall,
  viewForOtherClients,
} from './generation-view.ts';

/* A call with all that is known of it: the calls under it, its refund, and how its cost follows from its price. */

export const refundProperties = {
  amount_micro_usdc: micro,
  amount_usd: { type: 'string' },
  reason: { type: 'string', description: 'Why, in the words of the operator.' },
  at: { type: 'string', description: 'RFC 3339' },
} as const;

export const viewRefund = ({ amount, reason, at }: Pick<Refund, 'amount' | 'reason' | 'at'>) => ({
  amount_micro_usdc: Number(amount),
  amount_usd: formatUsd(amount),
  reason,
  at: new Date(at).toISOString(),
});

export const generationSchema = {
  title: 'Generation',
  type: 'object',
  required: [...callSchema.required, 'entries', 'run_cost', 'children'],
  properties: {
    ...callProperties,
    entries: {
      type: 'array',
      description: 'The movements of the money, in order.',
      items: objectOf({
        type: {
          type: 'string',
          description:
            '`lock` reserved, `draw` taken beyond the lock, `settle` charged, `lend` spent by calls under this one, `refund` given back.',
        },
        amount_micro_usdc: micro,
        amount_usd: { type: 'string' },
        at: { type: 'string' },
      }),
    },
    receipt: { type: ['string', 'null'], description: 'Signed receipt (compact JWS).' },
    refund: {
      ...objectOf(refundProperties),
      type: ['object', 'null'],
      description:
        'What the operator gave back after the call was charged. `total_cost` is still what was charged. null without a refund; absent from calls under this one.',
    },
    cost_lines: {
      type: 'array',
      description:
        'How the charge follows from the price: units × USD per unit, one line for each meter. Their sum, rounded up to a whole micro-USD, is what the use costs; a charge may be lower, because it is cut to what was locked. Empty if nothing was charged; absent from calls under this one.',
      items: objectOf({
        meter: { type: 'string' },
        units: { type: 'integer' },
        usd_per_unit: { type: 'string', description: 'Exact decimal.' },
        amount_usd: { type: 'string', description: 'Exact decimal, not rounded.' },
      }),
    },
    run_cost: { type: 'number', description: 'USD charged for this call and all that were made under it.' },
    children: {
      type: 'array',
      items: { type: 'object', additionalProperties: true },
      description:
        'Calls that were made under this one, oldest first, each like this with its own; at most 1,000 in all.',
    },
    ...otherClientsSchema,
  },
} as const;

type GenerationView = Readonly<Record<string, unknown>> &
  Pick<CallView, 'id' | 'state'> & { readonly children: readonly GenerationView[] };

/**
 * A call's record with all that is known of it. `runCost` is the charge for it and for all calls under it. The view has
 * no member for a `receipt` that is undefined.
 */
function viewGeneration(
  record: LockRecord,
  receipt: string | null | undefined,
  networks: readonly string[],
  children: readonly GenerationView[] = [],
  runCost: MicroUsd = record.charged,
) {
  const call = viewCall(record, networks);
  return {
    ...call,
    ...viewForOtherClients(call),
    entries: entriesOf(record),
    ...(receipt === undefined ? {} : { receipt }),
    run_cost: toUsdNumber(runCost),
    children,
  };
}

function entriesOf(record: LockRecord) {
  const entries: { type: string; amount_micro_usdc: number; amount_usd: string; at: string }[] = [];
  const add = (type: string, amount: MicroUsd, at: number) => {
    entries.push({
      type,
      amount_micro_usdc: Number(amount),
      amount_usd: formatUsd(amount),
      at: new Date(at).toISOString(),
    });
  };
  add('lock', record.amount, record.createdAt);
  if (record.resolvedAt === null) return entries;
  if (record.drawn > 0n) add('draw', record.drawn, record.resolvedAt);
  if (record.state === 'settled') add('settle', record.charged, record.resolvedAt);
  if (record.lent > 0n) add('lend', record.lent, record.resolvedAt);
  const refund = record.amount + record.drawn - record.charged - record.lent;
  if (refund > 0n) add('refund', refund, record.resolvedAt);
  return entries;
}

/** A call with the calls under it, and its refund. */
export async function viewWhole(
  record: LockRecord,
  { ledger, refunds, prices, networks }: GenerationDeps,
  receipt: ((record: LockRecord) => string | null) | null,
) {
  const isCharged = record.charged > 0n;
  const [tree, refund, lines] = await Promise.all([
    viewTree(record, ledger, receipt, networks),
    isCharged ? refunds.find(record.id) : null,
    isCharged && record.price !== null ? prices.costLines(record.price, unitsOf(record.usage)) : [],
  ]);
  return {
    ...tree,
    cost_lines: lines.map(viewCostLine),
    refund: refund === null ? null : viewRefund(refund),
  };
}

const unitsOf = (usage: string | null) =>
  Object.fromEntries(Object.entries(readCounts(usage)).map(([meter, units]) => [meter, BigInt(units)]));

const viewCostLine = ({ meter, units, rate }: CostLine) => ({
  meter,
  units: Number(units),
  usd_per_unit: unitUsd(rate),
  amount_usd: unitUsd(rate * units),
});
type CostLine = Awaited<ReturnType<PriceBook['costLines']>>[number];

export interface GenerationDeps {
  readonly ledger: Pick<Ledger, 'children'>;
  readonly refunds: Pick<Refunds, 'find' | 'amounts'>;
  readonly prices: Pick<PriceBook, 'costLines'>;
  /** CAIP-2 ids of the gateway's own chains. */
  readonly networks: readonly string[];
}

const CALLS_MAX = 1_000;

/** Returns the view of a call with the views of all calls under it. Without `receipt` they have no member for it. */
export async function viewTree(
  record: LockRecord,
  ledger: Pick<Ledger, 'children'>,
  receipt: ((record: LockRecord) => string | null) | null,
  networks: readonly string[],
): Promise<GenerationView> {
  let remaining = CALLS_MAX - 1;
  const view = async (one: LockRecord): Promise<{ readonly generation: GenerationView; readonly cost: MicroUsd }> => {
    const under = one.lendable > 0n && remaining > 0 ? await ledger.children(one.id, remaining) : [];
    remaining -= under.length;
    const children: GenerationView[] = [];
    let cost = one.charged;
    for (const child of under) {
      const seen = await view(child);
      children.push(seen.generation);
      cost += seen.cost;
    }
    return { generation: viewGeneration(one, receipt?.(one), networks, children, cost), cost };
  };
  return (await view(record)).generation;
}
