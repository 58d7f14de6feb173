import { createHash } from 'node:crypto';
import type { Ledger, LockRecord } from '#billing';
import type { Balance, LockRequest, SettleRequest, TransferRequest } from '../../src/billing/ledger/ledger.ts';

/* A simple model of the ledger: one operation after the other on plain maps, with a list of all movements. It is
   written from the interface's documentation and shares no code with the real ledger, so that the two can be
   compared. */

interface EraTranslator {
  readonly account: string;
  readonly part: 'available' | 'locked';
  readonly amount: bigint;
}

interface Entry {
  record: LockRecord;
}

export interface OracleLedger extends Ledger {
  /** All accounts that ever had an entry. */
  accounts(): readonly string[];
  /** All lock ids that were ever accepted. */
  locks(): readonly string[];
  /** Throws if the model contradicts itself in sums, signs or locks. */
  check(): void;
}

/**
 * A number from 0 to 9,999 for each lock id. It is added to the ten-thousandths of a fee before rounding down. So a
 * larger fraction is rounded up more often.
 */
const luckOf = (id: string): number => 9_999 - (createHash('sha256').update(id).digest().readUInt32BE(0) % 10_000);

export function createOracleLedger(now: () => number): OracleLedger {
  const locks = new Map<string, Entry>();
  const transfers = new Set<string>();
  const funded = new Set<string>();
  const budgets = new Map<string, { spent: bigint; locked: bigint }>();
  const legs: EraTranslator[] = [];

  const sum = (account: string, part: EraTranslator['part']) =>
    legs
      .filter((translator) => translator.account === account && translator.part === part)
      .reduce((total, { amount }) => total + amount, 0n);
  const known = (account: string) => legs.some((translator) => translator.account === account);
  const move = (amount: bigint, from: [string, EraTranslator['part']], to: [string, EraTranslator['part']]) => {
    if (amount === 0n) return;
    legs.push({ account: from[0], part: from[1], amount: -amount }, { account: to[0], part: to[1], amount });
  };
  const budgetOf = (id: string) => {
    const found = budgets.get(id) ?? { spent: 0n, locked: 0n };
    budgets.set(id, found);
    return found;
  };
  const end = (id: string, state: LockRecord['state'], changes: Partial<LockRecord>) => {
    const entry = locks.get(id)!;
    entry.record = { ...entry.record, state, resolvedAt: now(), ...changes };
  };
  const change = (id: string, changes: Partial<LockRecord>) => {
    const entry = locks.get(id)!;
    entry.record = { ...entry.record, ...changes };
  };
  const holds = ({ amount, lent }: LockRecord) => amount - lent;
  /** The unused rest of a lock goes back to its parent if the parent is held, otherwise to the account. */
  const handBack = (id: string, rest: bigint) => {
    const { account, parent, budgets: counted } = locks.get(id)!.record;
    const above = parent === null ? null : locks.get(parent)!.record;
    if (above?.state === 'held') return change(above.id, { lent: above.lent - rest });
    move(rest, [`escrow:${account}`, 'locked'], [`escrow:${account}`, 'available']);
    for (const budget of counted) budgetOf(budget).locked -= rest;
  };
  const levelsAbove = (record: LockRecord): number =>
    record.parent === null ? 0 : 1 + levelsAbove(locks.get(record.parent)!.record);
  const refusal = (id: string) => {
    const entry = locks.get(id);
    if (!entry) return { ok: false, reason: 'not_found' } as const;
    return entry.record.state === 'held' ? null : ({ ok: false, reason: 'already_resolved' } as const);
  };

  return {
    async lock({
      id,
      account,
      amount,
      prices,
      expiresAt,
      budgets: asked = [],
      detail,
      lendable = 0n,
      parent,
    }: LockRequest) {
      const escrow = `escrow:${account}`;
      const available = sum(escrow, 'available');
      if (locks.has(id)) return { ok: false, reason: 'duplicate', available };
      const above = parent === undefined ? undefined : locks.get(parent)?.record;
      if (parent !== undefined) {
        if (!above || above.state !== 'held' || above.account !== account)
          return { ok: false, reason: 'parent_over', available: 0n };
        const left = above.lendable - above.lent;
        if (levelsAbove(above) >= 7) return { ok: false, reason: 'too_deep', available: left };
        if (amount > left) return { ok: false, reason: 'parent_exhausted', available: left };
        change(above.id, { lent: above.lent + amount });
      } else {
        for (const budget of amount > 0n ? asked : []) {
          const { id, limit, carried = { spent: 0n, locked: 0n } } = budget;
          const counted = budgets.get(id) ?? { spent: 0n, locked: 0n };
          const [spent, locked] = [counted.spent + carried.spent, counted.locked + carried.locked];
          if (spent + locked + amount > limit)
            return { ok: false, reason: 'budget_exceeded', available, budget: { id, limit, spent, locked } };
        }
        if (amount > 0n && !known(escrow)) return { ok: false, reason: 'no_account', available };
        if (amount > available) return { ok: false, reason: 'insufficient', available };
        if (amount > 0n) for (const budget of asked) budgetOf(budget.id).locked += amount;
        move(amount, [escrow, 'available'], [escrow, 'locked']);
      }
      const nothing = {
        charged: 0n,
        fee: 0n,
        feeBps: null,
        drawn: 0n,
        shortfall: 0n,
        price: null,
        provider: null,
        resolvedAt: null,
        usage: null,
        detail: null,
      };
      const record: LockRecord = {
        ...nothing,
        id,
        account,
        amount,
        parent: parent ?? null,
        depth: above ? levelsAbove(above) + 1 : 0,
        lendable,
        lent: 0n,
        isKept: false,
        prices,
        budgets: above ? above.budgets : asked.map((budget) => budget.id),
        state: 'held',
        createdAt: now(),
        expiresAt,
        lockDetail: detail,
      };
      locks.set(id, { record });
      return { ok: true, available: sum(escrow, 'available') };
    },

    async settle({ id, price, provider, charge, draw, feeBps, usage, detail }: SettleRequest) {
      const refused = refusal(id);
      if (refused) return refused;
      const { record } = locks.get(id)!;
      const { account, amount, lendable, prices, parent, budgets: counted } = record;
      if (!prices.includes(price)) return { ok: false, reason: 'wrong_price' };
      const escrow = `escrow:${account}`;
      const own = amount - lendable;
      const within = charge < own ? charge : own;
      const wanted = charge - within;
      const spare = sum(escrow, 'available');
      let drawn = 0n;
      if (draw && parent === null) drawn = wanted < spare ? wanted : spare;
      const charged = within + drawn;
      const fee = BigInt(Math.floor((Number(charged) * feeBps + luckOf(id)) / 10_000));
      move(drawn, [escrow, 'available'], [escrow, 'locked']);
      move(charged - fee, [escrow, 'locked'], [`earnings:${provider}`, 'available']);
      move(fee, [escrow, 'locked'], ['fees', 'available']);
      for (const budget of counted) {
        budgetOf(budget).locked -= within;
        budgetOf(budget).spent += charged;
      }
      handBack(id, holds(record) - within);
      const settlement = { charged, fee, drawn, shortfall: charge - charged };
      end(id, 'settled', { ...settlement, feeBps, price, provider, usage, detail });
      return { ok: true, ...settlement, resolvedAt: now() };
    },

    async release({ id, detail }) {
      const refused = refusal(id);
      if (refused) return refused;
      handBack(id, holds(locks.get(id)!.record));
      end(id, 'released', { detail });
      return { ok: true };
    },

    async keep(id, until) {
      const refused = refusal(id);
      if (refused) return refused;
      const { expiresAt } = locks.get(id)!.record;
      change(id, { isKept: true, expiresAt: until > expiresAt ? until : expiresAt });
      return { ok: true };
    },

    async transfer({ id, from, to, amount }: TransferRequest) {
      const available = sum(from, 'available');
      if (transfers.has(id)) return { ok: false, reason: 'duplicate', available };
      if (!from.startsWith('treasury:') && amount > available) return { ok: false, reason: 'insufficient', available };
      transfers.add(id);
      if (amount >= 100_000n) funded.add(from).add(to);
      move(amount, [from, 'available'], [to, 'available']);
      return { ok: true, available: available - amount };
    },

    async expire(at, limit = 1_000, spare) {
      const due = [...locks.values()]
        .map(({ record }) => record)
        .filter(
          ({ state, expiresAt, isKept: kept }) => state === 'held' && expiresAt <= at && !(kept && spare === 'kept'),
        )
        .toSorted((a, b) => a.expiresAt - b.expiresAt || (a.id < b.id ? -1 : 1))
        .slice(0, limit);
      for (const { id } of due) {
        handBack(id, holds(locks.get(id)!.record));
        end(id, 'expired', {});
      }
      return due.map(({ id }) => id);
    },

    async balance(account): Promise<Balance | null> {
      return known(account) ? { available: sum(account, 'available'), locked: sum(account, 'locked') } : null;
    },
    async isFunded(account) {
      return funded.has(account) || sum(account, 'available') + sum(account, 'locked') >= 100_000n;
    },
    async find(id) {
      return locks.get(id)?.record ?? null;
    },
    async children(id, limit = 1_000) {
      return [...locks.values()]
        .map(({ record }) => record)
        .filter(({ parent }) => parent === id)
        .toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
        .slice(0, limit);
    },
    async budget(id) {
      const { spent, locked } = budgets.get(id) ?? { spent: 0n, locked: 0n };
      return { spent, locked };
    },
    spentOf: async (name) =>
      [...budgets].reduce((sum, [id, { spent }]) => (id.startsWith(`${name}:`) ? sum + spent : sum), 0n),
    async probe() {},
    async close() {},

    accounts: () => [...new Set(legs.map(({ account }) => account))],
    locks: () => [...locks.keys()],
    check() {
      const must = (holds: boolean, what: string) => {
        if (!holds) throw new Error(`the oracle broke its own rule: ${what}`);
      };
      must(legs.reduce((total, { amount }) => total + amount, 0n) === 0n, 'the legs sum to 0');
      for (const account of new Set(legs.map((translator) => translator.account))) {
        must(sum(account, 'available') >= 0n || account.startsWith('treasury:'), `${account} is not negative`);
        must(sum(account, 'locked') >= 0n, `${account} has nothing negative locked`);
      }
      for (const { record } of locks.values()) {
        must(
          record.charged <= record.amount - record.lendable + record.drawn,
          `${record.id} is charged at most its own part and what was drawn`,
        );
        must(record.fee <= record.charged, `${record.id} pays a fee within its charge`);
        must(record.lent >= 0n && record.lent <= record.lendable, `${record.id} lent at most what it may`);
      }
      const held = [...locks.values()].map(({ record }) => record).filter(({ state }) => state === 'held');
      const total = (records: readonly LockRecord[]) => records.reduce((all, record) => all + holds(record), 0n);
      for (const account of new Set(held.map((record) => record.account)))
        must(
          total(held.filter((record) => record.account === account)) === sum(`escrow:${account}`, 'locked'),
          `${account} has locked what its locks hold`,
        );
      for (const [id, { locked }] of budgets)
        must(
          total(held.filter((record) => record.budgets.includes(id))) === locked,
          `${id} has locked what its locks hold`,
        );
      // One cap applies to a whole run at any depth: all amounts that are held or charged under a lock come from what
      // the lock may lend.
      const under = (id: string): bigint =>
        [...locks.values()]
          .filter(({ record }) => record.parent === id)
          .reduce(
            (all, { record }) =>
              all + (record.state === 'held' ? holds(record) : 0n) + record.charged + under(record.id),
            0n,
          );
      for (const { record } of locks.values())
        must(under(record.id) <= record.lendable, `${record.id} bounds all that is under it`);
    },
  };
}
