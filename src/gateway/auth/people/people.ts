import type { MicroUsd } from '#billing/amounts';
import type { Config } from '#config';
import { type ConsumerStore, type LimitsStore, type MemberStore, subjectAccount, USUAL_PERCENTAGES } from '#accounts';
import { localAccount } from '#accounts/names';
import { ADMIN_ROLES, type AdminRole } from '../administrators/admin-keys.ts';
import type { KeyStore } from '../key-store.ts';
import type { WebSessions } from '../sessions/web-sessions.ts';
import type { ClaimedPerson, PeopleStore, Person } from './people-store.ts';
import { type LogoutToken, type PeopleProvider, type PersonClaims, ProviderAway, ProviderRefusal } from './provider.ts';

/** The company's people: what the provider says of them becomes rights, memberships and budgets. */
export interface People {
  /** The person who has just signed in, with rights. null if no group of the person has a rule. */
  arrived(claims: PersonClaims): Promise<Person | null>;
  /** Rights of administrators. null for nobody, and for a person without any. */
  readonly rolesOf: (account: string) => Promise<readonly AdminRole[] | null>;
  /** Ends the sessions that a logout token names, and asks the provider about the person soon. */
  logout(token: LogoutToken): Promise<void>;
  /**
   * Asks the provider about people who are due, and ends what nobody vouches for any more. Rejects with the error about
   * one person after all others are through.
   */
  follow(): Promise<void>;
}

interface PeopleDeps {
  readonly config: Config['people'] & { readonly issuer: string };
  readonly provider: Pick<PeopleProvider, 'refresh'>;
  readonly store: PeopleStore;
  readonly sessions: Pick<WebSessions, 'endOfPerson' | 'endOfSid'>;
  readonly members: Pick<MemberStore, 'find' | 'add' | 'change' | 'remove'>;
  readonly keys: Pick<KeyStore, 'deleteOfPerson'>;
  readonly limits: Pick<LimitsStore, 'get'>;
  readonly consumers: Pick<ConsumerStore, 'create'>;
  /** Called if the provider cannot be asked. */
  readonly onAway: (error: unknown) => void;
  /** Called if it is unclear whether the provider still knows a person. */
  readonly onUnclear: (account: string) => void;
  readonly now: () => number;
}

const AT_ONCE = 20;
/** A gateway that has claimed a person, and stops, leaves the person to others after this time. */
const CLAIM_MS = 60_000;
/** A provider first tells its clients of a logout and then ends its own session, until when its tokens are good. */
const AFTER_LOGOUT_MS = 3_000;
const BATCH = 200;

interface Membership {
  readonly role: 'viewer' | 'member' | 'admin';
  /** Micro-USD a month. null: none. */
  readonly budget: MicroUsd | null;
}

const ROLES = ['viewer', 'member', 'admin'] as const;

/** The rights that the rules give to somebody in these groups: of several rules, the highest role and budget. */
function rightsOf(rules: Config['people']['groups'], groups: readonly string[]) {
  const own = rules.filter(({ group }) => groups.includes(group));
  const organisations = new Map<string, Membership>();
  for (const { organisation, role, budget } of own) {
    if (organisation === null) continue;
    const account = localAccount(organisation);
    const other = organisations.get(account);
    const higher = other && ROLES.indexOf(other.role) > ROLES.indexOf(role) ? other.role : role;
    const more =
      other === undefined ? budget : other.budget === null || budget === null ? null : max(other.budget, budget);
    organisations.set(account, { role: higher, budget: more });
  }
  const adminRoles = ADMIN_ROLES.filter((role) => own.some(({ admin }) => admin.includes(role)));
  return { adminRoles, organisations };
}

/**
 * Providers such as Entra ID leave out the groups of a person in none. So where groups stood in such an answer before,
 * one without them means none. Any other answer without groups says nothing of them.
 */
const groupsOf = ({ groups, withoutGroups }: PersonClaims, before: Person | null): readonly string[] | null => {
  if (groups !== null || before === null) return groups;
  return before.groupsFrom !== null && withoutGroups.includes(before.groupsFrom) ? [] : before.groups;
};

const max = (one: bigint, other: bigint): bigint => (one > other ? one : other);

export function createPeople(deps: PeopleDeps): People {
  const { config, provider, store, sessions, keys, members, limits, consumers, onAway, onUnclear, now } = deps;

  const join = async (organisation: string, account: string, name: string, { role, budget }: Membership) => {
    // The label may be that of another account.
    const label = organisation.split(':').at(-1)!;
    if ((await consumers.create(organisation, label)) === null) await consumers.create(organisation, '');
    const had =
      (await members.find(organisation, account)) ??
      (await members.add({ account: organisation, member: account, role, name }));
    // An owner was made by a person, and stays one.
    if (had !== null && had.role !== role && had.role !== 'owner')
      await members.change(organisation, account, { role });
    const { budgets } = await limits.get(organisation, account);
    const monthly = budgets.find(({ limitReset }) => limitReset === 'monthly');
    if (budget === null || (monthly !== undefined && monthly.limit === budget && !monthly.limitSoft)) return;
    const rest = budgets.filter(({ limitReset }) => limitReset !== 'monthly');
    const own = { limit: budget, limitReset: 'monthly', limitSoft: false, notify: USUAL_PERCENTAGES } as const;
    await members.change(organisation, account, { limits: { budgets: [...rest, own] } });
  };

  const leave = async (person: Pick<Person, 'account'>, organisations: Iterable<string>) => {
    for (const organisation of organisations) await members.remove(organisation, person.account);
  };

  /**
   * Makes the rights of a person what the rules give to the groups that the provider says now, or said last if it says
   * nothing of them. Rights that end come first, and are noted last.
   */
  const apply = async (account: string, claims: PersonClaims, before: Person | null): Promise<Person | null> => {
    const { subject, refreshToken } = claims;
    const name = claims.name ?? before?.name ?? 'a person';
    const at = now();
    const groups = groupsOf(claims, before);
    // Somebody of whom this gateway has never known the groups.
    if (groups === null && before !== null) {
      const same = { ...before, name, refreshToken, answeredAt: at };
      await store.put(same, at + config.refreshMs);
      return same;
    }
    const { adminRoles, organisations } = rightsOf(config.groups, groups ?? []);
    await leave(
      { account },
      (before?.organisations ?? []).filter((one) => !organisations.has(one)),
    );
    if (adminRoles.length === 0 && organisations.size === 0) {
      // Sessions stay: they have no rights beyond the person's own account.
      if (before === null) return null;
    }
    const known = config.groups.map(({ group }) => group).filter((group) => groups?.includes(group));
    const person = {
      account,
      subject,
      name,
      adminRoles,
      refreshToken,
      answeredAt: at,
      groups: [...new Set(known)],
      groupsFrom: claims.groupsFrom ?? before?.groupsFrom ?? null,
    };
    // Noted before they exist, so that they end even if this gateway stops in between.
    await store.put({ ...person, organisations: [...organisations.keys()] }, at + config.refreshMs);
    for (const [organisation, membership] of organisations) await join(organisation, account, name, membership);
    return { ...person, organisations: [...organisations.keys()] };
  };

  /**
   * Nobody vouches for the person any more. A membership that an owner gave by hand stays, but has no keys, and nobody
   * can sign in to use it.
   */
  const remove = async (person: Person) => {
    await sessions.endOfPerson(person.account, null);
    await leave(person, person.organisations);
    await keys.deleteOfPerson(person.account);
    await store.delete(person.account);
  };

  /**
   * The provider does not take the token, and may have given another one that was lost. So this says nothing about the
   * person, whose keys stay as with a provider that gives no token. Whoever is still there signs in again.
   */
  const signOut = async (claimed: ClaimedPerson) => {
    if (!(await store.forgetToken(claimed))) return;
    await sessions.endOfPerson(claimed.account, null);
    onUnclear(claimed.account);
  };

  const ask = async (claimed: ClaimedPerson): Promise<void> => {
    // The secret of the gateways has changed: nobody can ask with this token.
    if (claimed.refreshToken === null) return;
    let current = claimed;
    const isNewest = async () => (await store.renewToken(current, current.refreshToken!)) !== null;
    let isStoring = false;
    const keep = async (token: string) => {
      isStoring = true;
      current = (await store.renewToken(current, token)) ?? current;
      isStoring = false;
    };
    try {
      const claims = await provider.refresh(claimed.refreshToken, claimed.subject, keep);
      if ((await store.find(claimed.account))?.refreshToken === current.refreshToken)
        await apply(claimed.account, claims, claimed);
    } catch (error) {
      // The database has failed, not the provider.
      if (isStoring) throw error;
      if (error instanceof ProviderAway) {
        onAway(error);
        await store.endRefresh(current, error.isUnclear);
      } else if (!(error instanceof ProviderRefusal)) throw error;
      else if (claimed.isUnclear) await signOut(claimed);
      else if (await isNewest()) await remove(claimed);
    }
  };

  return {
    async arrived(claims) {
      const account = subjectAccount(config.issuer, claims.subject);
      const before = await store.find(account);
      const person = await apply(account, claims, before);
      if (person !== null && person.adminRoles.length === 0 && person.organisations.length === 0) return null;
      return person;
    },

    async rolesOf(account) {
      const roles = (await store.find(account))?.adminRoles ?? [];
      return roles.length === 0 ? null : roles;
    },

    async logout({ subject, sid }) {
      const person = subject === null ? null : subjectAccount(config.issuer, subject);
      if (person !== null) await sessions.endOfPerson(person, sid);
      const ended = person === null && sid !== null ? await sessions.endOfSid(sid) : [];
      for (const account of person === null ? ended : [person]) await store.askAt(account, now() + AFTER_LOGOUT_MS);
    },

    async follow() {
      const faults: unknown[] = [];
      // What fails for one person must not keep the others in.
      const each = <P>(people: readonly P[], act: (person: P) => Promise<void>) =>
        Promise.all(people.map((person) => act(person).catch((error: unknown) => faults.push(error))));
      for (let claimed = AT_ONCE; claimed === AT_ONCE;) {
        const people = await store.claim(AT_ONCE, now() + CLAIM_MS);
        claimed = people.length;
        await each(people, ask);
      }
      const absent = await store.absentSince(now() - config.refreshMs - config.absentMs, BATCH);
      for (const account of absent) await sessions.endOfPerson(account, null);
      await each(await store.silentSince(now() - config.refreshMs - config.keysAbsentMs, BATCH), remove);
      if (faults.length > 0) throw faults[0];
    },
  };
}
