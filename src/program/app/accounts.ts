import { type LimitsStore, type MemberStore } from '#accounts';
import { type KeyStore, sessionRoutes } from '#auth';
import { archivedUntil, type Ledger, type PriceBook, type Refunds } from '#billing';
import { createRefunds } from '#billing/compose';
import { accountRoutes, approvalsRoutes, fundsRoutes, limitsRoutes, membersRoutes, providerKeysRoutes } from '#pages';
import { type AccountRecords, accountRecords } from './account-parts.ts';
import type { LastRefusals } from '#observe';
import type { Phases } from './calls.ts';
import { API, mount } from './mount.ts';
import type { Protocols } from './protocols.ts';

export interface AccountParts extends AccountRecords {
  readonly keys: KeyStore;
  readonly limits: LimitsStore;
  readonly members: MemberStore;
  readonly ledger: Ledger;
  readonly refunds: Refunds;
  readonly prices: PriceBook;
  readonly networks: readonly string[];
  offers(name: string): boolean;
  /** Requests per minute of a key without a rate of its own. */
  keyRate(): number;
  readonly refusals: LastRefusals;
  readonly now: () => number;
}

export function accountParts({ foundation, observers, money, access, network }: Phases): AccountParts {
  const { database, networks, now } = foundation;
  const { keys, limits, members, http } = access;
  return {
    ...accountRecords(database, now),
    keys,
    limits,
    members,
    ledger: money.ledger,
    refunds: createRefunds(database, money.ledger),
    prices: money.prices,
    networks,
    offers: (name) => http.catalog.offers().some(({ service }) => service === name),
    keyRate: network.routing.policies.ofKey,
    refusals: observers.lastRefusals,
    now,
  };
}

export async function mountAccounts(phases: Phases, parts: AccountParts, { work }: Protocols): Promise<void> {
  const { config, database, identity, networks, now } = phases.foundation;
  const { ledger, pastReceipts, chains } = phases.money;
  const { http, keys, nonces, browsers, authenticator, signIn, payments, providerKeys } = phases.access;
  const { admit, count, countNewKey } = phases.calls.pipeline;
  const accounts = accountRoutes({
    ...parts,
    archivedUntil: () => archivedUntil(database.query),
    admit,
    countNewKey,
    nonces,
    tasks: work.tasks,
    receipt: pastReceipts.ofRecord,
  });
  const development = config.mode === 'development';
  const sessions = sessionRoutes({
    browsers,
    authenticator,
    admit,
    count,
    keys,
    signIn,
    nonces,
    development,
    people: config.people.issuer !== null,
    networks,
  });
  const { funds } = chains;
  const money = fundsRoutes({ admit, funds, payments, ledger, keys, nonces, signIn, identity, networks, now });
  const { allowPrivate } = config.webhooks;
  const limits = limitsRoutes({ ...parts, admit, nonces, notices: work.notices, allowPrivate });
  const members = membersRoutes({ ...parts, admit, nonces });
  const catalogued = () => http.catalog.offers();
  const ownKeys = providerKeysRoutes({ admit, keys, nonces, providerKeys, catalogued });
  const approvals = approvalsRoutes({
    admit,
    approvals: phases.calls.approvals,
    keys,
    limits: parts.limits,
    nonces,
    now,
  });
  await mount(http.server, { accounts, sessions, funds: money, limits, members, ownKeys, approvals }, API);
}
