import { consumerOf, escrowOf, limitOf, type LockRequest } from './ledger.ts';
import type { AccountRow, BudgetRow, LedgerState } from './ledger-changes.ts';
import type { Decision } from './ledger-decide.ts';
import type { LedgerOperation } from './ledger-operations.ts';
import type { KnownRows } from './ledger-postgres-known.ts';

/** Ids of accounts and budgets. */
export interface Ids {
  readonly accounts: ReadonlySet<string>;
  readonly budgets: ReadonlySet<string>;
}

export const NO_IDS: Ids = { accounts: new Set(), budgets: new Set() };

export function withIds(ids: Ids, more: Ids): Ids {
  // Most groups fold and refill nothing.
  if (more === NO_IDS) return ids;
  if (ids === NO_IDS) return more;
  return { accounts: ids.accounts.union(more.accounts), budgets: ids.budgets.union(more.budgets) };
}

const holdsAll = ({ accounts, budgets }: Ids, other: Ids): boolean =>
  other.accounts.isSubsetOf(accounts) && other.budgets.isSubsetOf(budgets);

/** The account and the budgets that a lock or a settlement counts in. */
const idsOf = (account: string, budgets: readonly string[]): Ids => ({
  accounts: new Set([escrowOf(account)]),
  budgets: new Set(budgets),
});

const idsOfLock = ({ account, budgets = [] }: LockRequest): Ids =>
  idsOf(
    account,
    budgets.map(({ id }) => id),
  );

/** The accounts of consumers that transfers of a group debit. Their stripes are folded, so that all of it is there. */
export const debitedOf = (operations: readonly LedgerOperation[]): Ids => {
  const accounts = operations.flatMap(({ kind, request }) =>
    kind === 'transfer' && consumerOf(request.from) !== null ? [request.from] : [],
  );
  return accounts.length === 0 ? NO_IDS : { accounts: new Set(accounts), budgets: NO_IDS.budgets };
};

interface Need {
  readonly amount: bigint;
  /** Of a budget: its limit. */
  readonly most: bigint | null;
}

/** The new locks of a group that take their money from this gateway's stripe, and what that needs. */
export interface LeasePlan {
  readonly stripe: number;
  readonly locks: ReadonlySet<LockRequest>;
  readonly accounts: ReadonlyMap<string, Need>;
  readonly budgets: ReadonlyMap<string, Need>;
  /** Those whose stripe has too little, as far as is known: their rows are locked, and a part goes to the stripe. */
  readonly refill: Ids;
  /** Those of locks on budgets whose limit has changed since room was leased: all their stripes are folded. */
  readonly outdated: Ids;
}

/**
 * The plan for a group. Locks on accounts and budgets that other gateways use as well take leases, unless these are
 * being `folded`. `stripe`: null for a gateway without a stripe of its own. null without such locks.
 */
export function planLeases(
  operations: readonly LedgerOperation[],
  stripe: number | null,
  { known, folded, refill }: { readonly known: KnownRows; readonly folded: Ids; readonly refill: Ids },
): LeasePlan | null {
  if (stripe === null) return null;
  const locks = new Set<LockRequest>();
  const accounts = new Map<string, Need>();
  const budgets = new Map<string, Need>();
  let outdated = NO_IDS;
  for (const { kind, request } of operations) {
    if (kind !== 'lock' || request.parent !== undefined || !takesLease(request, known, folded)) continue;
    const isOutdated = request.budgets?.some((budget) => {
      const most = known.budget(budget.id, stripe)?.most;
      return most !== undefined && most !== limitOf(budget);
    });
    if (isOutdated) outdated = withIds(outdated, idsOfLock(request));
    else locks.add(request);
  }
  // What is folded is not leased in the same group. Such a group is rare, so it leases nothing.
  if (outdated !== NO_IDS) locks.clear();
  for (const request of locks) {
    add(accounts, escrowOf(request.account), request.amount, null);
    for (const budget of request.budgets ?? []) add(budgets, budget.id, request.amount, limitOf(budget));
  }
  if (locks.size === 0 && outdated === NO_IDS) return null;
  const fits = fitsIn({ stripe, accounts, budgets }, known);
  const short = [...locks].filter((request) => !fits(request)).map(idsOfLock);
  return { stripe, locks, accounts, budgets, refill: short.reduce(withIds, refill), outdated };
}

/** Whether the stripe has enough for a lock, beside the others of the group. */
function fitsIn(
  { stripe, accounts, budgets }: Pick<LeasePlan, 'stripe' | 'accounts' | 'budgets'>,
  rows: Rows,
): (request: LockRequest) => boolean {
  const shortAccounts = new Set<string>();
  const shortBudgets = new Set<string>();
  for (const [id, { amount }] of accounts) {
    const row = rows.account(id, stripe);
    if (!row || row.available < amount) shortAccounts.add(id);
  }
  for (const [id, { amount, most }] of budgets) {
    const row = rows.budget(id, stripe);
    if (!row || row.most !== most || (row.leased ?? 0n) - row.spent - row.locked < amount) shortBudgets.add(id);
  }
  return ({ account, budgets: its = [] }) =>
    !shortAccounts.has(escrowOf(account)) && !its.some(({ id }) => shortBudgets.has(id));
}

/** Rows, or stripes, as they were read or are known. */
interface Rows {
  account(id: string, stripe: number): AccountRow | null | undefined;
  budget(id: string, stripe: number): BudgetRow | null | undefined;
}

function takesLease({ account, budgets = [] }: LockRequest, known: KnownRows, folded: Ids): boolean {
  const escrow = escrowOf(account);
  if (folded.accounts.has(escrow) || budgets.some(({ id }) => folded.budgets.has(id))) return false;
  return known.isShared(escrow) || budgets.some(({ id }) => known.isShared(id));
}

/** A lease of 0 would be none, so a free lock counts as 1. */
function add(needs: Map<string, Need>, id: string, amount: bigint, most: bigint | null): void {
  const before = needs.get(id)?.amount ?? 0n;
  needs.set(id, { amount: before + (amount > 0n ? amount : 1n), most });
}

/** The stripe of each new lock, by rows that were read: the plan's stripe if account and budgets have enough there. */
export function stripesByPlan(plan: LeasePlan | null, rows: Rows): Required<LedgerState>['stripeOf'] {
  if (plan === null) return () => undefined;
  const fits = fitsIn(plan, rows);
  return (request) => (plan.locks.has(request) && fits(request) ? plan.stripe : undefined);
}

/**
 * The accounts and budgets of locks that the plan's stripe has no room for, although it seemed so, if their own rows
 * were not read.
 */
export function unreadOf(plan: LeasePlan | null, stripeOf: Required<LedgerState>['stripeOf']): Ids {
  if (plan === null) return NO_IDS;
  const unread = [...plan.locks].filter((request) => stripeOf(request) === undefined).map(idsOfLock);
  return unread.filter((ids) => !holdsAll(plan.refill, ids)).reduce(withIds, NO_IDS);
}

/**
 * The accounts and budgets of operations that were refused, or could not be charged in full, although their stripes may
 * have more. They are decided again with stripes that are `folded`. `isCertain`: also if the stripes have nothing in
 * the database, because rows are missing, or because another operation of the group has given something back to one.
 */
export function shortOf(
  operations: readonly LedgerOperation[],
  { results, resolvedLocks, accounts, budgets }: Decision,
  { stripeOf }: { readonly stripeOf: Required<LedgerState>['stripeOf'] },
  folded: Ids,
): { readonly ids: Ids; readonly isCertain: boolean } {
  let ids = NO_IDS;
  let isCertain = false;
  for (const [index, { kind, request }] of operations.entries()) {
    const result = results[index]!;
    let short: Ids | null = null;
    let isOfStripe = false;
    if (kind === 'lock' && !result.ok) {
      if (result.reason === 'insufficient' || result.reason === 'budget_exceeded') short = idsOfLock(request);
      isOfStripe = stripeOf(request) !== undefined;
    } else if (kind === 'settle' && request.draw && result.ok && 'drawn' in result) {
      if (result.drawn === 0n && result.shortfall === 0n) continue;
      const row = resolvedLocks.find(({ id }) => id === request.id)!;
      isOfStripe = row.heldIn !== undefined;
      if (row.parent === null && (isOfStripe || result.shortfall > 0n)) short = idsOf(row.account, row.budgets);
    }
    if (short === null || holdsAll(folded, short)) continue;
    ids = withIds(ids, short);
    isCertain ||= isOfStripe;
  }
  isCertain ||= accounts.some((row) => row.stripe !== undefined && ids.accounts.has(row.id) && row.available > 0n);
  isCertain ||= budgets.some(
    (row) => row.stripe !== undefined && ids.budgets.has(row.id) && (row.leased ?? 0n) > row.locked,
  );
  return { ids, isCertain };
}
