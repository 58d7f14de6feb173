import { loadStatements, type Database, type Row, type Value } from '#store';
import type { MemberRole } from './caller.ts';
import { inTurn, isLabelTaken, LABELS_TURN, nameOf } from './consumer-store.ts';
import type { AccountLimits } from './budgets.ts';
import { limitsSteps, type LimitsStore } from './limits-store.ts';

/** The roles of members, from the fewest rights to the most. */
export const MEMBER_ROLES = ['viewer', 'member', 'admin', 'owner'] as const satisfies readonly MemberRole[];

export const reaches = (role: MemberRole, needed: MemberRole): boolean =>
  MEMBER_ROLES.indexOf(role) >= MEMBER_ROLES.indexOf(needed);

/** An account that may act for another account. Times are epoch milliseconds. */
export interface AccountMember {
  /** The organisation: the account that the member acts for. */
  readonly account: string;
  /** The account that the member signs in as. */
  readonly member: string;
  readonly role: MemberRole;
  readonly name: string;
  readonly createdAt: number;
}

/** Members of accounts in the database. All methods reject with the database's error. */
export interface MemberStore {
  find(account: string, member: string): Promise<AccountMember | null>;
  /** In the order in which they were added. */
  list(account: string): Promise<readonly AccountMember[]>;
  /**
   * The accounts that `member` belongs to, with their labels. Accounts that it created itself come first, then by age
   * of the membership.
   */
  accountsOf(
    member: string,
    page: { readonly offset: number; readonly limit: number },
  ): Promise<readonly (AccountMember & { readonly label: string })[]>;
  /**
   * Creates an account with `member` as its owner, and resolves with the owner. null if `member` has created `most`
   * already, or if another account has this label or name, in any case of letters.
   */
  makeOrganisation(organisation: {
    readonly account: string;
    readonly label: string;
    readonly member: string;
    readonly name: string;
    /** Default: of an account that had money. */
    readonly most?: number;
  }): Promise<AccountMember | null>;
  countMade(member: string): Promise<number>;
  /** null if it is a member already, or if the account has MEMBERS_MAX members. */
  add(member: Omit<AccountMember, 'createdAt'>): Promise<AccountMember | null>;
  /**
   * null, and nothing changes, if there is no such member, or if the change would leave the account without an owner.
   * `limits` replace those of the member that they name, which its keys share. The keys of a viewer are refused at once
   * here, and within a second on other gateways.
   */
  change(
    account: string,
    member: string,
    changes: {
      readonly role?: MemberRole | undefined;
      readonly name?: string | undefined;
      readonly limits?: Partial<AccountLimits> | undefined;
    },
  ): Promise<AccountMember | null>;
  /**
   * Removes a member with its keys and limits. Takes effect at once here, and within a second on other gateways. False
   * if there is no such member, or if it is the last owner.
   */
  remove(account: string, member: string): Promise<boolean>;
}

/**
 * Organisations that an account may create, by whether it never had money. Organisations where others made it an owner
 * do not count.
 */
export const organisationsMax = (isUnfunded: boolean): number => (isUnfunded ? 1 : 20);
export const MEMBERS_MAX = 1_000;

const SQL = loadStatements(import.meta.url, './sql/members.sql', [
  'findMember',
  'listMembers',
  'listOrganisations',
  'countMadeOrganisations',
  'insertOrganisation',
  'noteFirstUse',
  'insertFirstOwner',
  'listKeysOfMember',
  'touchMembers',
  'insertMember',
  'changeMember',
  'deleteMember',
  'deleteKeysOfNobody',
  'deleteLimitsOfNobody',
]);

interface MemberStoreOptions {
  readonly keys: { memberChanged(hash: string): void };
  readonly limits: Pick<LimitsStore, 'changed' | 'prepare'>;
  readonly now: () => number;
}

export function createMemberStore(
  database: Pick<Database, 'query' | 'batch'>,
  { keys, limits, now }: MemberStoreOptions,
): MemberStore {
  return {
    async find(account, member) {
      const [row] = await database.query(SQL.findMember, [account, member]);
      return row ? memberOf(row) : null;
    },
    list: async (account) => (await database.query(SQL.listMembers, [account])).map(memberOf),
    accountsOf: async (member, { offset, limit }) =>
      (await database.query(SQL.listOrganisations, [member, limit, offset])).map((row) => ({
        ...memberOf(row),
        label: row['label'] as string,
      })),
    async makeOrganisation({ account, label, member, name, most = organisationsMax(false) }) {
      if (await isLabelTaken(database, account, label)) return null;
      // The turn of labels is also that of organisations, so each insert counts those before it.
      const [owner] = await inTurn(database, LABELS_TURN, [
        { statement: SQL.insertOrganisation, params: [account, label, now(), member, most, nameOf(label)] },
        { statement: SQL.noteFirstUse, params: [account] },
        { statement: SQL.insertFirstOwner, params: [account, member, name] },
      ]);
      return owner ? memberOf(owner) : null;
    },
    countMade: async (member) => Number((await database.query(SQL.countMadeOrganisations, [member]))[0]!['made']),
    async add({ account, member, role, name }) {
      const params = [account, member, role, name, now(), MEMBERS_MAX];
      const [row] = await inTurn(database, `members of ${account}`, [{ statement: SQL.insertMember, params }]);
      return row ? memberOf(row) : null;
    },
    async change(account, member, { role, name, limits: limited = {} }) {
      const set = (value: string | undefined): Value[] => (value === undefined ? [0, ''] : [1, value]);
      const hasLimits = Object.keys(limited).length > 0;
      await limits.prepare(account, member, limited);
      try {
        const [, changed, owned] = await database.batch([
          { statement: SQL.touchMembers, params: [account] },
          { statement: SQL.changeMember, params: [account, member, ...set(role), ...set(name)] },
          { statement: SQL.listKeysOfMember, params: [account, member] },
          ...(hasLimits ? limitsSteps(account, member, limited, { at: now(), role }) : []),
        ]);
        for (const { hash } of owned!) keys.memberChanged(hash as string);
        return changed![0] ? memberOf(changed![0]) : null;
      } finally {
        // Listeners are notified after a failure too: the commit may have happened although its response was lost.
        if (hasLimits) limits.changed(account);
      }
    },
    async remove(account, member) {
      const [, removed, ended] = await database.batch([
        { statement: SQL.touchMembers, params: [account] },
        { statement: SQL.deleteMember, params: [account, member] },
        { statement: SQL.deleteKeysOfNobody, params: [account, member] },
        { statement: SQL.deleteLimitsOfNobody, params: [account, member] },
      ]);
      for (const { hash } of ended!) keys.memberChanged(hash as string);
      return removed!.length > 0;
    },
  };
}

const memberOf = (row: Row): AccountMember => ({
  account: row['account'] as string,
  member: row['member'] as string,
  role: row['role'] as MemberRole,
  name: row['name'] as string,
  createdAt: Number(row['created_at']),
});
