import type { Budget, BudgetUse, MicroUsd } from '#billing';
import type { CallerBudget } from '#gateway';

/**
 * How often a spending limit starts anew; null is never. Periods begin at 00:00 UTC: each day, each Monday,
 * each first of the month.
 */
export const LIMIT_RESETS = ['daily', 'weekly', 'monthly'] as const;
export type LimitReset = (typeof LIMIT_RESETS)[number];

interface SpendPeriod {
  /** Epoch milliseconds of the first instant. */
  readonly start: number;
  /** Epoch milliseconds of the first instant after it. */
  readonly end: number;
}

const DAY_MS = 86_400_000;
/** 1970-01-05 was the first Monday of the epoch. */
const FIRST_MONDAY = 4 * DAY_MS;

export function periodAt(reset: LimitReset, now: number): SpendPeriod {
  if (reset === 'monthly') {
    const date = new Date(now);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
  }
  const [length, origin] = reset === 'daily' ? [DAY_MS, 0] : [7 * DAY_MS, FIRST_MONDAY];
  const start = Math.floor((now - origin) / length) * length + origin;
  return { start, end: start + length };
}

/** A spending limit of somebody, micro-USD in each reset period. */
export interface SpendLimit {
  /** null: without an end. */
  readonly limit: MicroUsd | null;
  /** When it starts anew; null is never. */
  readonly limitReset: LimitReset | null;
  /** It refuses nothing, and is told of alone. */
  readonly limitSoft: boolean;
  /** Counts besides in one of its periods, see CarriedSums; left out where nothing does. */
  readonly carried?: CarriedUse;
}

/** Spending that is carried to a budget of the ledger: to one period of a limit. */
export interface CarriedUse extends BudgetUse {
  readonly budget: string;
}

/** Nobody reaches it: far above all money, and small enough for sums in 64 bits. */
const NO_LIMIT: MicroUsd = 2n ** 61n;

/**
 * The ledger's budget of what somebody may spend now: `<name>:all`, or `<name>:daily-2026-01-31` with the reset and
 * the period's first day, so that a new period is a new budget that starts at 0. Without a limit there is one too, so
 * that what each key spends is counted; the ledger writes it once for all calls of a key in a batch.
 */
export function budgetAt(
  name: string,
  { limit, limitReset, limitSoft, carried }: SpendLimit,
  now: number,
): Budget & Pick<CallerBudget, 'resetsAt'> {
  const most = limit === null || limitSoft ? NO_LIMIT : limit;
  const { id, end } = budgetPeriod(name, limit === null ? null : limitReset, now);
  const budget = { id, limit: most, resetsAt: end };
  return carried?.budget === id ? { ...budget, carried: { spent: carried.spent, locked: carried.locked } } : budget;
}

interface BudgetPeriod {
  /** Of the ledger's budget, see budgetAt. */
  readonly id: string;
  /** As those of a SpendPeriod; null where the limit never starts anew. */
  readonly start: number | null;
  readonly end: number | null;
}

/** The period of a limit at an instant. */
export function budgetPeriod(name: string, reset: LimitReset | null, at: number): BudgetPeriod {
  if (reset === null) return { id: `${name}:all`, start: null, end: null };
  const { start, end } = periodAt(reset, at);
  return { id: `${name}:${periodName(reset, start)}`, start, end };
}

/** `daily-2026-01-31`: a reset, and the first day of a period. */
export const periodName = (reset: LimitReset, start: number): string =>
  `${reset}-${new Date(start).toISOString().slice(0, 10)}`;
