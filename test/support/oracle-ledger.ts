import type { Balance, Ledger, LockRecord, LockRequest, LockState, SettleRequest, TransferRequest } from '#billing';

/*
 * The ledger as one would explain it: one operation after the other on plain maps, with a list of every movement beside them.
 * Written from the interface's documentation and sharing nothing with the real one, so that it can be its judge.
 */

interface Leg {
  readonly account: string;
  readonly part: 'available' | 'locked';
  readonly amount: bigint;
}

interface Entry {
  record: LockRecord;
}

export interface OracleLedger extends Ledger {
  /** Every account that ever had an entry. */
  accounts(): readonly string[];
  /** Every lock id that was ever accepted. */
  locks(): readonly string[];
  /** Throws when the oracle contradicts itself: sums, signs, locks. */
  check(): void;
}

export function createOracleLedger(now: () => number): OracleLedger {
  const locks = new Map<string, Entry>();
  const transfers = new Set<string>();
  const budgets = new Map<string, { spent: bigint; locked: bigint }>();
  const legs: Leg[] = [];

  const sum = (account: string, part: Leg['part']) =>
    legs.filter((leg) => leg.account === account && leg.part === part).reduce((total, { amount }) => total + amount, 0n);
  const known = (account: string) => legs.some((leg) => leg.account === account);
  const move = (amount: bigint, from: [string, Leg['part']], to: [string, Leg['part']]) => {
    legs.push({ account: from[0], part: from[1], amount: -amount }, { account: to[0], part: to[1], amount });
  };
  const budgetOf = (id: string) => {
    const found = budgets.get(id) ?? { spent: 0n, locked: 0n };
    budgets.set(id, found);
    return found;
  };
  const end = (id: string, state: LockState, changes: Partial<LockRecord>) => {
    const entry = locks.get(id)!;
    entry.record = { ...entry.record, state, resolvedAt: now(), ...changes };
  };
  const free = (id: string) => {
    const { account, amount, budget } = locks.get(id)!.record;
    move(amount, [`escrow:${account}`, 'locked'], [`escrow:${account}`, 'available']);
    if (budget !== null) budgetOf(budget).locked -= amount;
  };
  const refusal = (id: string) => {
    const entry = locks.get(id);
    if (!entry) return { ok: false, reason: 'not_found' } as const;
    return entry.record.state === 'held' ? null : ({ ok: false, reason: 'already_resolved' } as const);
  };

  return {
    async lock({ id, account, amount, prices, expiresAt, budget, detail }: LockRequest) {
      const escrow = `escrow:${account}`;
      const available = sum(escrow, 'available');
      if (locks.has(id)) return { ok: false, reason: 'duplicate', available };
      if (!known(escrow)) return { ok: false, reason: 'no_account', available };
      if (amount > available) return { ok: false, reason: 'insufficient', available };
      if (budget) {
        const used = budgets.get(budget.id) ?? { spent: 0n, locked: 0n };
        if (used.spent + used.locked + amount > budget.limit) return { ok: false, reason: 'budget_exceeded', available };
        budgetOf(budget.id).locked += amount;
      }
      move(amount, [escrow, 'available'], [escrow, 'locked']);
      const nothing = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n, price: null, provider: null, resolvedAt: null, usage: null, detail: null };
      const record: LockRecord = {
        ...nothing,
        id,
        account,
        amount,
        prices,
        budget: budget?.id ?? null,
        state: 'held',
        createdAt: now(),
        expiresAt,
        lockDetail: detail,
      };
      locks.set(id, { record });
      return { ok: true, available: available - amount };
    },

    async settle({ id, price, provider, charge, draw, feeBps, usage, detail }: SettleRequest) {
      const refused = refusal(id);
      if (refused) return refused;
      const { account, amount, prices, budget } = locks.get(id)!.record;
      if (!prices.includes(price)) return { ok: false, reason: 'wrong_price' };
      const escrow = `escrow:${account}`;
      free(id);
      const within = charge < amount ? charge : amount;
      const rest = sum(escrow, 'available') - (amount - within) - within;
      const wanted = charge - within;
      let drawn = 0n;
      if (draw) drawn = wanted < rest ? wanted : rest;
      const charged = within + drawn;
      const fee = (charged * BigInt(feeBps)) / 10_000n;
      if (charged - fee > 0n) move(charged - fee, [escrow, 'available'], [`earnings:${provider}`, 'available']);
      if (fee > 0n) move(fee, [escrow, 'available'], ['fees', 'available']);
      if (budget !== null) budgetOf(budget).spent += charged;
      const settlement = { charged, fee, drawn, shortfall: charge - charged };
      end(id, 'settled', { ...settlement, price, provider, usage, detail });
      return { ok: true, ...settlement };
    },

    async release({ id, detail }) {
      const refused = refusal(id);
      if (refused) return refused;
      free(id);
      end(id, 'released', { detail });
      return { ok: true };
    },

    async transfer({ id, from, to, amount }: TransferRequest) {
      const available = sum(from, 'available');
      if (transfers.has(id)) return { ok: false, reason: 'duplicate', available };
      if (!from.startsWith('treasury:') && amount > available) return { ok: false, reason: 'insufficient', available };
      transfers.add(id);
      move(amount, [from, 'available'], [to, 'available']);
      return { ok: true };
    },

    async expire(at, limit = 1_000) {
      const due = [...locks.values()]
        .map(({ record }) => record)
        .filter(({ state, expiresAt }) => state === 'held' && expiresAt <= at)
        .toSorted((a, b) => a.expiresAt - b.expiresAt || (a.id < b.id ? -1 : 1))
        .slice(0, limit);
      for (const { id } of due) {
        free(id);
        end(id, 'expired', {});
      }
      return due.map(({ id }) => id);
    },

    async balance(account): Promise<Balance | null> {
      return known(account) ? { available: sum(account, 'available'), locked: sum(account, 'locked') } : null;
    },
    async find(id) {
      return locks.get(id)?.record ?? null;
    },
    async budget(id) {
      const { spent, locked } = budgets.get(id) ?? { spent: 0n, locked: 0n };
      return { spent, locked };
    },
    async close() {},

    accounts: () => [...new Set(legs.map(({ account }) => account))],
    locks: () => [...locks.keys()],
    check() {
      const must = (holds: boolean, what: string) => {
        if (!holds) throw new Error(`the oracle broke its own rule: ${what}`);
      };
      must(legs.reduce((total, { amount }) => total + amount, 0n) === 0n, 'the legs sum to 0');
      for (const account of new Set(legs.map((leg) => leg.account))) {
        must(sum(account, 'available') >= 0n || account.startsWith('treasury:'), `${account} is not negative`);
        must(sum(account, 'locked') >= 0n, `${account} has nothing negative locked`);
      }
      for (const { record } of locks.values()) {
        must(record.charged <= record.amount + record.drawn, `${record.id} is charged at most its lock and what was drawn`);
        must(record.fee <= record.charged, `${record.id} pays a fee within its charge`);
      }
    },
  };
}
