import { loadStatement, type Database, type Row, type Value } from '#store';
import type { MemberRole } from '#gateway';
import type { KeyStore } from '../key-store.ts';
import type { BudgetRule } from '../limits/account-limits.ts';
import { limitsSteps, type LimitsStore } from '../limits/limits-store.ts';

/** Somebody who may act for an account. Times are epoch milliseconds. */
export interface Member {
  /** The account that is acted for: the organisation. */
  readonly account: string;
  /** The account that the member signs in as. */
  readonly member: string;
  readonly role: MemberRole;
  readonly name: string;
  readonly createdAt: number;
}

/** Members of accounts in the database. Rejects with the database's error when it cannot be reached. */
export interface MemberStore {
  find(account: string, member: string): Promise<Member | null>;
  /** The one who came first is the first. */
  list(account: string): Promise<readonly Member[]>;
  /** The accounts that somebody is a member of, with their labels: those first that it made itself, then the oldest. */
  of(
    member: string,
    page: { readonly offset: number; readonly limit: number },
  ): Promise<readonly (Member & { readonly label: string })[]>;
  /**
   * Makes an account of which `member` is the owner, and gives back that one. null where it has made ORGANISATIONS_MAX
   * already.
   */
  makeOrganisation(organisation: {
    readonly account: string;
    readonly label: string;
    readonly member: string;
    readonly name: string;
  }): Promise<Member | null>;
  /** null where it is a member already, or the account has MEMBERS_MAX. */
  add(member: Omit<Member, 'createdAt'>): Promise<Member | null>;
  /**
   * null where there is no such member, or it is the last owner and would not be one any more: then nothing changes.
   * `budgets`, for its keys together, replace those before. Keys of a viewer open nothing: at once here, within a
   * second on every other gateway.
   */
  change(
    account: string,
    member: string,
    changes: {
      readonly role?: MemberRole | undefined;
      readonly name?: string | undefined;
      readonly budgets?: readonly BudgetRule[] | undefined;
    },
  ): Promise<Member | null>;
  /**
   * Removes a member with its keys and limits: at once here, within a second on every other gateway. False where there
   * is no such member, or it is the last owner.
   */
  remove(account: string, member: string): Promise<boolean>;
}

/** Organisations that an account may make. Those that others make it an owner of do not count. */
export const ORGANISATIONS_MAX = 20;
/** Members that an account may have. */
export const MEMBERS_MAX = 1_000;

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const FIND = load('find-member');
const LIST = load('list-members');
const ORGANISATIONS = load('list-organisations');
const WAIT_FOR_MAKER = load('wait-for-maker');
const INSERT_ORGANISATION = load('insert-organisation');
const INSERT_OWNER = load('insert-first-owner');
const LET_NEXT_MAKE = load('let-next-make');
const KEYS = load('list-keys-of-member');
const TOUCH = load('touch-members');
const INSERT = load('insert-member');
const CHANGE = load('change-member');
const DELETE = load('delete-member');
const DELETE_KEYS = load('delete-keys-of-nobody');
const DELETE_LIMITS = load('delete-limits-of-nobody');

interface MemberStoreOptions {
  readonly keys: Pick<KeyStore, 'memberChanged'>;
  readonly limits: Pick<LimitsStore, 'changed' | 'prepare'>;
  readonly now: () => number;
}

export function createMemberStore(
  database: Pick<Database, 'query' | 'batch'>,
  { keys, limits, now }: MemberStoreOptions,
): MemberStore {
  return {
    async find(account, member) {
      const [row] = await database.query(FIND, [account, member]);
      return row ? memberOf(row) : null;
    },
    list: async (account) => (await database.query(LIST, [account])).map(memberOf),
    of: async (member, { offset, limit }) =>
      (await database.query(ORGANISATIONS, [member, limit, offset])).map((row) => ({
        ...memberOf(row),
        label: row['label'] as string,
      })),
    async makeOrganisation({ account, label, member, name }) {
      const making = [`organisations of ${member}`];
      const [, , owner] = await database.batch([
        { statement: WAIT_FOR_MAKER, params: making },
        { statement: INSERT_ORGANISATION, params: [account, label, now(), member, ORGANISATIONS_MAX] },
        { statement: INSERT_OWNER, params: [account, member, name] },
        { statement: LET_NEXT_MAKE, params: making },
      ]);
      return owner![0] ? memberOf(owner![0]) : null;
    },
    async add({ account, member, role, name }) {
      const [row] = await database.query(INSERT, [account, member, role, name, now(), MEMBERS_MAX]);
      return row ? memberOf(row) : null;
    },
    async change(account, member, { role, name, budgets }) {
      const set = (value: string | undefined): Value[] => (value === undefined ? [0, ''] : [1, value]);
      await limits.prepare(account, member, budgets ?? []);
      try {
        const [, changed, owned] = await database.batch([
          { statement: TOUCH, params: [account] },
          { statement: CHANGE, params: [account, member, ...set(role), ...set(name)] },
          { statement: KEYS, params: [account, member] },
          ...(budgets === undefined ? [] : limitsSteps(account, member, { budgets }, { at: now(), role })),
        ]);
        for (const { hash } of owned!) keys.memberChanged(hash as string);
        return changed![0] ? memberOf(changed![0]) : null;
      } finally {
        // Also after a failure: a commit whose answer was lost may have happened.
        if (budgets !== undefined) limits.changed(account);
      }
    },
    async remove(account, member) {
      const [, removed, ended] = await database.batch([
        { statement: TOUCH, params: [account] },
        { statement: DELETE, params: [account, member] },
        { statement: DELETE_KEYS, params: [account, member] },
        { statement: DELETE_LIMITS, params: [account, member] },
      ]);
      for (const { hash } of ended!) keys.memberChanged(hash as string);
      return removed!.length > 0;
    },
  };
}

const memberOf = (row: Row): Member => ({
  account: row['account'] as string,
  member: row['member'] as string,
  role: row['role'] as MemberRole,
  name: row['name'] as string,
  createdAt: Number(row['created_at']),
});
