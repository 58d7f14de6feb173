import { loadStatements, type Database, type Row } from '#store';
import { createSealedTexts, type SealSecret } from '#security';
import type { ClaimsSource } from './provider.ts';
import { ADMIN_ROLES, type AdminRole } from '../administrators/admin-keys.ts';

/** A person of the company, as the provider last described the person. Times are epoch milliseconds. */
export interface Person {
  /** Of the issuer and the subject. The email is never the identity. */
  readonly account: string;
  readonly subject: string;
  readonly name: string;
  readonly adminRoles: readonly AdminRole[];
  /** Accounts of organisations in which a group made the person a member. */
  readonly organisations: readonly string[];
  /** Those with a rule that the provider last said. null: it has said nothing of groups yet. */
  readonly groups: readonly string[] | null;
  /** The kind of answer in which it said them. */
  readonly groupsFrom: ClaimsSource | null;
  /** null if the provider gave none. */
  readonly refreshToken: string | null;
  readonly answeredAt: number;
}

/** People in the database. All methods reject with the database's error. */
export interface PeopleStore {
  put(person: Person, dueAt: number): Promise<void>;
  find(account: string): Promise<Person | null>;
  /** At most `limit` people who are due. No other gateway gets them before `until`. */
  claim(limit: number, until: number): Promise<readonly ClaimedPerson[]>;
  /** Replaces the token of a claimed person. False if a newer sign-in has brought another one. */
  renewToken(claimed: ClaimedPerson, token: string): Promise<ClaimedPerson | null>;
  /** Notes that the provider gave no answer about a claimed person, or that its answer may have been lost. */
  endRefresh(claimed: ClaimedPerson, isUnclear: boolean): Promise<void>;
  /** Forgets the token of a claimed person. False if a newer sign-in has brought another one. */
  forgetToken(claimed: ClaimedPerson): Promise<boolean>;
  /** The person is due at this time. */
  askAt(account: string, at: number): Promise<void>;
  silentSince(at: number, limit: number): Promise<readonly Person[]>;
  /** Accounts with open sessions. */
  absentSince(at: number, limit: number): Promise<readonly string[]>;
  delete(account: string): Promise<void>;
  /** Seals the tokens anew that a former secret has sealed, or only counts them. Resolves with their number. */
  reseal(mode: 'write' | 'count'): Promise<number>;
}

export interface ClaimedPerson extends Person {
  readonly sealedToken: string;
  /**
   * The answer to an earlier question was lost, perhaps with its gateway. A provider that gives a refresh token once
   * may not take this one any more.
   */
  readonly isUnclear: boolean;
}

const SQL = loadStatements(import.meta.url, './sql/people.sql', [
  'putPerson',
  'findPerson',
  'claimPeople',
  'renewToken',
  'endRefresh',
  'forgetToken',
  'askAt',
  'listSilent',
  'listAbsent',
  'listTokens',
  'deletePerson',
]);

interface PeopleStoreOptions {
  /** 32 bytes that the gateways share. */
  readonly secret: SealSecret;
  readonly now: () => number;
}

export function createPeopleStore(database: Pick<Database, 'query'>, { secret, now }: PeopleStoreOptions): PeopleStore {
  const seals = createSealedTexts(secret);
  const personOf = (row: Row): Person => {
    const account = row['account'] as string;
    const sealed = row['refresh_token'] as string | null;
    const roles = JSON.parse(row['admin_roles'] as string) as readonly string[];
    return {
      account,
      subject: row['subject'] as string,
      name: row['name'] as string,
      adminRoles: ADMIN_ROLES.filter((role) => roles.includes(role)),
      organisations: JSON.parse(row['organisations'] as string) as readonly string[],
      groups: row['known_groups'] === null ? null : (JSON.parse(row['known_groups'] as string) as readonly string[]),
      groupsFrom: row['groups_from'] as ClaimsSource | null,
      refreshToken: sealed === null ? null : seals.open(account, sealed),
      answeredAt: Number(row['answered_at']),
    };
  };
  return {
    async put({ account, subject, name, adminRoles, organisations, refreshToken, answeredAt, ...rest }, dueAt) {
      const lists = [JSON.stringify(adminRoles), JSON.stringify(organisations)];
      const sealed = refreshToken === null ? null : seals.seal(account, refreshToken);
      const groups = [rest.groups === null ? null : JSON.stringify(rest.groups), rest.groupsFrom];
      await database.query(SQL.putPerson, [account, subject, name, ...lists, sealed, answeredAt, dueAt, ...groups]);
    },
    async find(account) {
      const [row] = await database.query(SQL.findPerson, [account]);
      return row ? personOf(row) : null;
    },
    async claim(limit, until) {
      const rows = await database.query(SQL.claimPeople, [now(), until, limit]);
      return rows.map((row) => ({
        ...personOf(row),
        sealedToken: row['refresh_token'] as string,
        isUnclear: row['unclear'] === 1n,
      }));
    },
    async renewToken(claimed, token) {
      const sealedToken = seals.seal(claimed.account, token);
      const rows = await database.query(SQL.renewToken, [claimed.account, claimed.sealedToken, sealedToken]);
      return rows.length === 0 ? null : { ...claimed, refreshToken: token, sealedToken };
    },
    async endRefresh({ account, sealedToken }, isUnclear) {
      await database.query(SQL.endRefresh, [account, sealedToken, isUnclear ? 1 : 0]);
    },
    forgetToken: async ({ account, sealedToken }) =>
      (await database.query(SQL.forgetToken, [account, sealedToken])).length > 0,
    async askAt(account, at) {
      await database.query(SQL.askAt, [account, at]);
    },
    silentSince: async (at, limit) => (await database.query(SQL.listSilent, [at, limit])).map(personOf),
    absentSince: async (at, limit) =>
      (await database.query(SQL.listAbsent, [at, limit])).map((row) => row['account'] as string),
    async delete(account) {
      await database.query(SQL.deletePerson, [account]);
    },
    async reseal(mode) {
      let count = 0;
      for (const row of await database.query(SQL.listTokens)) {
        const [account, sealed] = [row['account'] as string, row['refresh_token'] as string];
        const anew = seals.reseal(account, sealed);
        if (anew !== null)
          count += mode === 'count' ? 1 : (await database.query(SQL.renewToken, [account, sealed, anew])).length;
      }
      return count;
    },
  };
}
