import { GENESIS, loadStatements, type Row, type Step } from '#store';
import { earningsOf, escrowOf, FEES } from './ledger.ts';
import { keyOf, type AccountRow, type BudgetRow, type LedgerState, type LockRow } from './ledger-changes.ts';
import type { ChainHead } from './journal.ts';
import type { LedgerOperation, OperationResult } from './ledger-operations.ts';
import type { AssumedRows, KnownRows, OwnLocks } from './ledger-postgres-known.ts';
import { stripesByPlan, unreadOf, type Ids, type LeasePlan } from './ledger-postgres-leases.ts';
import { numbers, texts } from './ledger-postgres-write.ts';
import { toAccount, toAccountStripe, toBudget, toBudgetStripe, toOpenLock } from './ledger-rows.ts';

const LEDGER_POSTGRES_SQL = loadStatements(import.meta.url, '../sql/ledger-postgres.sql', [
  'pgAccounts',
  'pgLocks',
  'pgBudgets',
  'pgAccountStripes',
  'pgBudgetStripes',
  'pgFoldStripes',
  'pgFoldBudgetStripes',
  'pgHasLeases',
  'pgLeaseAccounts',
  'pgLeaseBudgets',
  'pgNewBudgets',
  'pgTransfers',
  'pgCommitted',
  'pgBegin',
]);
const BEGIN: Step = { statement: LEDGER_POSTGRES_SQL.pgBegin };
const JOURNAL_SQL = loadStatements(import.meta.url, '../sql/journal.sql', ['chainHead']);

/**
 * Rounds to read again. One is enough, unless locks of further accounts appear while the transaction waits for rows.
 */
const READ_ROUNDS = 3;

/**
 * A transaction whose COMMIT was sent but not answered. Its hash in the journal shows later whether it was committed.
 * If it was, these are its results.
 */
export interface Doubt {
  readonly hash: string;
  readonly results: ReadonlyMap<LedgerOperation, OperationResult>;
}

export type Send = (steps: readonly Step[]) => Promise<readonly (readonly Row[])[]>;

interface ReadState extends LedgerState {
  readonly stripeOf: Required<LedgerState>['stripeOf'];
  readonly head: ChainHead;
  readonly committed: Doubt | undefined;
  /**
   * Accounts that are only credited. Their rows are neither locked nor read, and `account` gives them with zeros: the
   * decision does not depend on their balances, and the credits are added to stripes of this gateway.
   */
  readonly credited: ReadonlySet<string>;
  /** All rows and stripes that were read. */
  readonly read: { readonly accounts: Iterable<AccountRow>; readonly budgets: Iterable<BudgetRow> };
  /** Rows that must be read after all, because a stripe has less than was known. */
  readonly unread: Ids;
  /** True if the database has a lock with one of these ids. */
  isAnyInUse(ids: readonly string[]): Promise<boolean>;
  /** True if stripes of these accounts have money, or stripes of these budgets have room. */
  hasLeases(ids: Ids): Promise<boolean>;
}

interface GroupReadOptions {
  readonly chain: string;
  /** True reads the chain's head, and finds out which of the doubts was committed. */
  readonly askHead: boolean;
  readonly doubts: readonly Doubt[];
  /**
   * Locks that need not be read. If they are given, ids of new locks are assumed to be unused; the write fails if one
   * is used. null reads everything.
   */
  readonly own: OwnLocks | null;
  readonly known: KnownRows;
  readonly plan: LeasePlan | null;
  /** Accounts and budgets whose stripes give back what they have, so that the decision sees all of it. */
  readonly folded: Ids;
}

/**
 * Begins the transaction, locks every account and budget row that the operations touch, and reads these rows. Kinds of
 * rows that the operations do not touch are not queried.
 */
export async function readState(
  send: Send,
  operations: readonly LedgerOperation[],
  { chain, askHead, doubts, own, known, plan, folded }: GroupReadOptions,
): Promise<ReadState> {
  const touched = touch(operations, own, plan, folded);
  const ids = (some: Iterable<string>) => texts([...some], (id) => id);
  const lockIds = ids(touched.locks);
  const budgetIds = ids(touched.budgets);
  const hasLocks = touched.locks.size > 0;
  const accountStep: Step = { statement: LEDGER_POSTGRES_SQL.pgAccounts, params: [ids(touched.accounts), lockIds] };
  const lockStep: Step = { statement: LEDGER_POSTGRES_SQL.pgLocks, params: [lockIds] };
  const budgetStep: Step = { statement: LEDGER_POSTGRES_SQL.pgBudgets, params: [budgetIds, lockIds] };
  const transferStep: Step = { statement: LEDGER_POSTGRES_SQL.pgTransfers, params: [ids(touched.transfers)] };
  const stripes = stripeSteps(touched, lockIds, plan, folded);
  const ask = async (steps: readonly (Step | null)[]) => {
    const rows = new Map<Step, readonly Row[]>();
    const present = steps.filter((step) => step !== null);
    const answers = await send(present);
    present.forEach((step, index) => rows.set(step, answers[index]!));
    return (step: Step) => rows.get(step) ?? [];
  };
  const hasBudgets = hasLocks || touched.budgets.size > 0;
  // Locks are read last: a lock may only change while its account or its stripe is locked.
  const rows = [accountStep, hasBudgets ? budgetStep : null, ...stripes.read, hasLocks ? lockStep : null] as const;
  // Rows are locked in the order of their ids before stripes are changed, and read again afterwards. Stripes come after
  // budgets, as in a group that is written.
  const before = { accounts: { ...accountStep }, budgets: { ...budgetStep } };
  const changes =
    stripes.change.length === 0 ? [] : [before.accounts, ...(hasBudgets ? [before.budgets] : []), ...stripes.change];
  const first = await ask([BEGIN, ...changes, ...rows, touched.transfers.size > 0 ? transferStep : null]);
  const asRead = stripes.change.length === 0 ? { accounts: accountStep, budgets: budgetStep } : before;
  known.compare(first(asRead.accounts).map(toAccount), first(asRead.budgets).map(toBudget));
  known.share(first(asRead.accounts).flatMap((row) => (row['striped'] === null ? [] : [row.id as string])));
  const transfers = new Set(first(transferStep).map((row) => row.id));
  const read = (answer: (step: Step) => readonly Row[]) => ({
    accounts: byKey([...answer(accountStep).map(toAccount), ...answer(stripes.accounts).map(toAccountStripe)]),
    locks: byKey(answer(lockStep).map(toOpenLock), ({ id }) => id),
    budgets: byKey([...answer(budgetStep).map(toBudget), ...answer(stripes.budgets).map(toBudgetStripe)]),
  });
  let { accounts, locks, budgets } = read(first);
  known.forgetMissing(touched.stripes.accounts.keys(), accounts);
  // A lock may have been made while this transaction waited for account rows. Then the row of its account is not locked
  // yet, so everything that depends on the lock could still change.
  const unlocked = () => locks.values().some((row) => !accounts.has(keyOf(escrowOf(row.account), row.heldIn)));
  for (let round = 0; round < READ_ROUNDS && unlocked(); round += 1)
    ({ accounts, locks, budgets } = read(await ask([...rows])));
  if ([...touched.budgets].some((id) => !budgets.has(id))) {
    const [, again] = await send([{ statement: LEDGER_POSTGRES_SQL.pgNewBudgets, params: [budgetIds] }, budgetStep]);
    for (const row of again!.map(toBudget)) budgets.set(row.id, row);
  }
  const parentIds = parentsOf(operations, locks);
  if (parentIds.length > 0) {
    // A parent has the same account, budgets and stripe as the locks under it, and these rows are locked. So no other
    // transaction can change the parent's `state` or `lent` before this one ends.
    const [parentRows] = await send([
      { statement: LEDGER_POSTGRES_SQL.pgLocks, params: [texts(parentIds, (id) => id)] },
    ]);
    for (const row of parentRows!.map(toOpenLock)) locks.set(row.id, row);
  }
  let head: ChainHead = { n: 0, hash: GENESIS };
  let committed: Doubt | undefined;
  if (askHead) {
    // Read after the rows are locked. A transaction in doubt that holds these rows is by now committed or lost. One
    // that only arrives later finds rows that have changed, or the number of its group taken.
    const [headRows, committedRows] = await send([
      { statement: JOURNAL_SQL.chainHead, params: [chain] },
      { statement: LEDGER_POSTGRES_SQL.pgCommitted, params: [chain, texts(doubts, ({ hash }) => hash)] },
    ]);
    const row = headRows![0];
    if (row) head = { n: Number(row.n), hash: row.hash as string };
    const hash = committedRows![0]?.hash;
    committed = doubts.find((doubt) => doubt.hash === hash);
  }
  const account = (id: string, stripe?: number) => accounts.get(keyOf(id, stripe));
  const budget = (id: string, stripe?: number) => budgets.get(keyOf(id, stripe));
  const stripeOf = stripesByPlan(plan, { account, budget });
  const isAny = async (statement: Step['statement'], params: readonly string[]) =>
    (await send([{ statement, params }]))[0]!.length > 0;
  return {
    head,
    committed,
    credited: touched.credited,
    account: (id, stripe) =>
      account(id, stripe) ?? (stripe === undefined && touched.credited.has(id) ? { id, ...NOTHING } : undefined),
    lock: (id) => locks.get(id) ?? own?.get(id),
    budget,
    hasTransfer: (id) => transfers.has(id),
    stripeOf,
    folded,
    read: { accounts: [...accounts.values()], budgets: [...budgets.values()] },
    unread: unreadOf(plan, stripeOf),
    isAnyInUse: async (some) => some.length > 0 && (await isAny(LEDGER_POSTGRES_SQL.pgLocks, [ids(some)])),
    hasLeases: async (some) =>
      some.accounts.size > 0 && (await isAny(LEDGER_POSTGRES_SQL.pgHasLeases, [ids(some.accounts), ids(some.budgets)])),
  };
}

/**
 * The statements about stripes. `change` comes after the rows of accounts and budgets are locked: it locks the stripes,
 * takes back what those of `folded` have, and refills this gateway's. `read` reads the stripes again.
 */
function stripeSteps(touched: ReturnType<typeof touch>, lockIds: string, plan: LeasePlan | null, folded: Ids) {
  const ids = (some: Iterable<string>) => texts([...some], (id) => id);
  const credits = [...touched.accounts].filter(isStriped);
  const step = (statement: Step['statement'], some: ReadonlyMap<string, StripeKey>, all: Iterable<string>): Step => {
    const keys = [...some.values()];
    const params = [texts(keys, ([id]) => id), numbers(keys, ([, stripe]) => stripe), lockIds, ids(all)];
    return { statement, params };
  };
  const { stripes } = touched;
  const accounts = step(LEDGER_POSTGRES_SQL.pgAccountStripes, stripes.accounts, folded.accounts);
  const budgets = step(LEDGER_POSTGRES_SQL.pgBudgetStripes, stripes.budgets, folded.budgets);
  const hasAccounts = stripes.accounts.size > 0 || touched.locks.size > 0 || folded.accounts.size > 0;
  const hasBudgets = stripes.budgets.size > 0 || touched.locks.size > 0 || folded.budgets.size > 0;
  const short = {
    accounts: plan ? [...plan.accounts].filter(([id]) => plan.refill.accounts.has(id)) : [],
    budgets: plan ? [...plan.budgets].filter(([id]) => plan.refill.budgets.has(id)) : [],
  };
  const change: Step[] = [];
  if (folded.accounts.size > 0 || short.accounts.length > 0) change.push({ ...accounts });
  if (folded.accounts.size > 0)
    change.push({ statement: LEDGER_POSTGRES_SQL.pgFoldStripes, params: [ids(folded.accounts)] });
  if (short.accounts.length > 0)
    change.push({
      statement: LEDGER_POSTGRES_SQL.pgLeaseAccounts,
      params: [texts(short.accounts, ([id]) => id), numbers(short.accounts, ([, { amount }]) => amount), plan!.stripe],
    });
  if (folded.budgets.size > 0 || short.budgets.length > 0) change.push({ ...budgets });
  if (folded.budgets.size > 0)
    change.push({ statement: LEDGER_POSTGRES_SQL.pgFoldBudgetStripes, params: [ids(folded.budgets)] });
  if (short.budgets.length > 0)
    change.push({
      statement: LEDGER_POSTGRES_SQL.pgLeaseBudgets,
      params: [
        texts(short.budgets, ([id]) => id),
        numbers(short.budgets, ([, { amount }]) => amount),
        plan!.stripe,
        numbers(short.budgets, ([, { most }]) => most),
      ],
    });
  if (credits.length > 0) {
    // Stripes that are credited come last, as in a group that is written.
    if (hasAccounts) change.push({ ...accounts });
    if (hasBudgets) change.push({ ...budgets });
    change.push({ statement: LEDGER_POSTGRES_SQL.pgFoldStripes, params: [ids(credits)] });
  }
  return { change, accounts, budgets, read: [hasAccounts ? accounts : null, hasBudgets ? budgets : null] };
}

/** Rows on which a group is decided without reading, and the accounts that it credits in a stripe. */
interface AssumedState extends LedgerState, AssumedRows {
  readonly credited: ReadonlySet<string>;
}

/**
 * The rows for operations that only lock, settle or release, if all of them are known; null if one must be read. The
 * decision on them must be written with assumeSteps, and counts only if it refuses nothing.
 */
export function assumeState(
  operations: readonly LedgerOperation[],
  { known, own, plan }: { readonly known: KnownRows; readonly own: OwnLocks; readonly plan: LeasePlan | null },
): AssumedState | null {
  const isUsual = ({ kind, request }: LedgerOperation): boolean =>
    (kind === 'lock' && request.parent === undefined) || kind === 'settle' || kind === 'release';
  if (!operations.every(isUsual)) return null;
  if (plan && plan.refill.accounts.size + plan.outdated.accounts.size > 0) return null;
  const { accounts, credited, locks, budgets, stripes } = touch(operations, own, plan);
  if (locks.size > 0) return null;
  const accountRows = new Map<string, AccountRow>();
  for (const [id, stripe] of [...[...accounts].map(alone), ...stripes.accounts.values()]) {
    const row = known.account(id, stripe);
    if (row === null) return null;
    accountRows.set(keyOf(id, stripe), row);
  }
  const budgetRows = new Map<string, BudgetRow>();
  for (const [id, stripe] of [...[...budgets].map(alone), ...stripes.budgets.values()]) {
    const row = known.budget(id, stripe);
    if (row === null) return null;
    budgetRows.set(keyOf(id, stripe), row);
  }
  return {
    credited,
    accounts: [...accountRows.values()],
    budgets: [...budgetRows.values()],
    account: (id, stripe) =>
      stripe === undefined && credited.has(id) ? { id, ...NOTHING } : accountRows.get(keyOf(id, stripe)),
    // A copy, because the decision may be discarded.
    lock: (id) => {
      const row = own.get(id);
      return row && { ...row };
    },
    budget: (id, stripe) => budgetRows.get(keyOf(id, stripe)),
    hasTransfer: () => false,
    stripeOf: (request) => (plan?.locks.has(request) ? plan.stripe : undefined),
  };
}

const alone = (id: string): readonly [string, undefined] => [id, undefined];

function byKey<T extends { readonly id: string; readonly stripe?: number | undefined }>(
  rows: readonly T[],
  key: (row: T) => string = ({ id, stripe }) => keyOf(id, stripe),
): Map<string, T> {
  return new Map(rows.map((row) => [key(row), row]));
}

/**
 * Ids of parents that were not read yet. They are the parents of locks that the operations resolve, and money is given
 * back to them.
 */
function parentsOf(operations: readonly LedgerOperation[], locks: ReadonlyMap<string, LockRow>): readonly string[] {
  const parents = new Set<string>();
  for (const { kind, request } of operations) {
    if (kind !== 'settle' && kind !== 'release' && kind !== 'expire') continue;
    const parent = locks.get(request.id)?.parent ?? null;
    if (parent !== null && !locks.has(parent)) parents.add(parent);
  }
  return [...parents];
}

/**
 * The keys of rows that the operations name. For locks that are read, the statements find the accounts and budgets
 * themselves.
 */
function touch(operations: readonly LedgerOperation[], own: OwnLocks | null, plan: LeasePlan | null, folded?: Ids) {
  const accounts = new Set<string>(folded?.accounts);
  const credited = new Set<string>();
  const locks = new Set<string>();
  const budgets = new Set<string>(folded?.budgets);
  const transfers = new Set<string>();
  /** Stripes of locks that are known, and of new locks. Those of locks that are read are found by the statements. */
  const stripes = { accounts: new Map<string, StripeKey>(), budgets: new Map<string, StripeKey>() };
  const touchStripe = (some: Map<string, StripeKey>, id: string, stripe: number) =>
    some.set(keyOf(id, stripe), [id, stripe]);
  const touchLock = (id: string) => {
    const row = own?.get(id);
    if (row === undefined) locks.add(id);
    else if (row.heldIn === undefined) {
      accounts.add(escrowOf(row.account));
      for (const id of row.budgets) budgets.add(id);
    } else {
      touchStripe(stripes.accounts, escrowOf(row.account), row.heldIn);
      for (const id of row.budgets) touchStripe(stripes.budgets, id, row.heldIn);
    }
  };
  for (const { kind, request } of operations) {
    if (kind === 'transfer') {
      transfers.add(request.id);
      accounts.add(request.from);
      accounts.add(request.to);
    } else if (kind === 'lock') {
      if (own === null) locks.add(request.id);
      const escrow = escrowOf(request.account);
      const leased = plan?.locks.has(request) ? plan : null;
      if (leased) touchStripe(stripes.accounts, escrow, leased.stripe);
      if (!leased || leased.refill.accounts.has(escrow)) accounts.add(escrow);
      if (request.parent !== undefined) locks.add(request.parent);
      else
        for (const { id } of request.budgets ?? []) {
          if (leased) touchStripe(stripes.budgets, id, leased.stripe);
          if (!leased || leased.refill.budgets.has(id)) budgets.add(id);
        }
    } else if (kind === 'settle') {
      touchLock(request.id);
      credited.add(earningsOf(request.provider));
      if (request.feeBps > 0) credited.add(FEES);
    } else if (kind === 'release') touchLock(request.id);
    // Another gateway may have changed `isKept` and `expiresAt`, so the lock is always read.
    else locks.add(request.id);
  }
  return { accounts, credited: credited.difference(accounts), locks, budgets, transfers, stripes };
}

type StripeKey = readonly [id: string, stripe: number];

/** The row of an account that is credited in a stripe, as a decision sees it. */
const NOTHING = { available: 0n, locked: 0n };

/** Accounts that every settlement may credit. */
const isStriped = (id: string): boolean => id === FEES || id.startsWith(earningsOf(''));
