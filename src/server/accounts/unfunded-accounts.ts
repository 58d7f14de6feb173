import { RecentMap } from '#maps';
import { loadStatements, type Database } from '#store';
import { earningsOf, escrowOf, type Ledger } from '#billing';
import { costsNothing, isWallet } from './account-id.ts';

const SQL = loadStatements(import.meta.url, './sql/unfunded-accounts.sql', [
  'noteUse',
  'listDue',
  'findStored',
  'listMembersOf',
  'lookLater',
  'holdUse',
  'forgetKeys',
  'forgetNames',
  'forgetLimits',
  'forgetWebhook',
  'forgetNotices',
  'forgetProviderKeys',
  'forgetWallets',
  'forgetSessions',
  'forgetMembers',
  'forgetAccount',
  'forgetUse',
]);

const DAY_MS = 86_400_000;
/** An account that never had money is forgotten so long after its last use. */
const UNUSED_MS = 90 * DAY_MS;
/** Accounts of which this process knows that their use of today is noted. */
const NOTED_MAX = 10_000;

interface UnfundedAccountsOptions {
  readonly database: Pick<Database, 'query' | 'batch'>;
  readonly ledger: Pick<Ledger, 'balance' | 'isFunded'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/**
 * The last use of accounts that cost nothing and never had money. Whoever has one has any number of them, so what they
 * keep (keys, names, limits, webhooks, organisations with their members) ends when nobody uses it.
 */
interface UnfundedAccounts {
  /** Notes that such an account is used: once a day, and again if that could not be written. */
  used(account: string): void;
  /**
   * Looks at no more than `limit` accounts that are due, and resolves with their number. Those that are unused are
   * forgotten, and at the first look, which is after a day, those that keep nothing.
   */
  sweep(limit: number): Promise<number>;
}

/** A provider is named by its wallet. */
const providerOf = (account: string): string => account.slice(account.indexOf(':') + 1);

/**
 * Whether an account costs nothing and never had money to speak of, neither as a consumer nor as a provider: a
 * millionth of a dollar, paid in or earned, costs nothing either. Rejects if the ledger is away.
 */
export async function neverHadMoney(ledger: Pick<Ledger, 'isFunded'>, account: string): Promise<boolean> {
  if (!costsNothing(account)) return false;
  const held = [escrowOf(account), earningsOf(providerOf(account))];
  return (await Promise.all(held.map((name) => ledger.isFunded(name)))).every((isFunded) => !isFunded);
}

export function createUnfundedAccounts({ database, ledger, now }: UnfundedAccountsOptions): UnfundedAccounts {
  const noted = new RecentMap<number>(NOTED_MAX);

  /** Whether an organisation has any money, which nobody could use without it: a wallet comes back by itself. */
  async function strandsMoney(account: string): Promise<boolean> {
    const balance = isWallet(account) ? null : await ledger.balance(escrowOf(account));
    return balance !== null && balance.available + balance.locked > 0n;
  }

  /** Whether all members are wallets that never had money: to others the organisation belongs too. */
  async function hasOnlyUnfunded(account: string): Promise<boolean> {
    for (const { member } of await database.query(SQL.listMembersOf, [account]))
      if (!isWallet(member as string) || !(await neverHadMoney(ledger, member as string))) return false;
    return true;
  }

  async function lookAt(account: string, usedAt: number): Promise<void> {
    const use = [account, usedAt];
    if (!(await neverHadMoney(ledger, account))) {
      await database.query(SQL.forgetUse, use);
      return;
    }
    const [row] = await database.query(SQL.findStored, [account, providerOf(account)]);
    const isStored = Number(row!['stored']) === 1;
    const isUnused = usedAt > 0 && usedAt + UNUSED_MS <= now();
    const mayGo =
      isUnused && Number(row!['stays']) === 0 && !(await strandsMoney(account)) && (await hasOnlyUnfunded(account));
    if (isStored && !mayGo) {
      const since = usedAt === 0 ? now() : usedAt;
      await database.query(SQL.lookLater, [...use, since, isUnused ? now() + UNUSED_MS : since + UNUSED_MS]);
      return;
    }
    const forget = [
      SQL.holdUse,
      SQL.forgetKeys,
      SQL.forgetNames,
      SQL.forgetLimits,
      SQL.forgetWebhook,
      SQL.forgetNotices,
      SQL.forgetProviderKeys,
      SQL.forgetWallets,
      SQL.forgetSessions,
      SQL.forgetMembers,
      SQL.forgetAccount,
      SQL.forgetUse,
    ];
    await database.batch((isStored ? forget : [SQL.forgetUse]).map((statement) => ({ statement, params: use })));
  }

  return {
    used(account) {
      const at = now();
      const day = Math.floor(at / DAY_MS);
      if (noted.get(account) === day) return;
      noted.set(account, day);
      database.query(SQL.noteUse, [account, at, at + DAY_MS]).catch(() => noted.delete(account));
    },
    async sweep(limit) {
      const due = await database.query(SQL.listDue, [now(), limit]);
      for (const { account, used_at: usedAt } of due) await lookAt(account as string, Number(usedAt));
      return due.length;
    },
  };
}
