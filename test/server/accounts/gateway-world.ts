import { onTestFinished } from 'vitest';
import type { OpenDatabase } from '#store';
import { accountTotals, createLedger, createPriceBook, createRefunds, findLocks } from '#billing/compose';
import { escrowOf, findTransfer, treasuryOf, type Ledger } from '#billing';
import { priceId } from '#billing/amounts';
import type { LimitsConfig } from '#config';
import { createRateLimiter, createRatePolicies } from '#limits';
import { createServer } from '#http';
import { createConsumerStore, createLimitsStore, createMemberStore, createNoteStore } from '#accounts';
import { createKeyStore, type KeyStore, createKey } from '#auth';
import { localAccount } from '#accounts/names';
import { accountRoutes, adminRoutes, auditRoutes, createKeyUsage } from '#pages';
import { auditFunds } from '#payments/on-chains';
import { createAdminGuard } from '../../../src/gateway/auth/administrators/admin-gate.ts';
import { createAdminLog } from '#auth/keys';
import { rateLimitError } from '../../../src/server/limits/caller-rates.ts';
import { createKeyAuthenticator } from '../../gateway/auth/key-authenticator.ts';
import { openTestDatabase } from '../../gateway/test-database.ts';
import { DEFAULT_LIMITS } from '../../support/default-limits.ts';

/** For routes of a database without calls: no list, and no archive. */
export const NO_CALLS = {
  findLocks: async () => ({ records: [], next: null }),
  findArchived: async () => null,
  archivedUntil: async () => 0,
  endCall: null,
  isSeenProvider: async () => true,
};

export const LIMITS: LimitsConfig = {
  ...DEFAULT_LIMITS,
  anonymousRequestsPerMinute: 1_000_000,
  tokensPerMinute: 1_000_000,
  chatBodyBytesMax: 10_000,
  mediaBodyBytesMax: 10_000,
  bodiesWaitMs: 0,
  bodyBytesMax: 10_000,
  messagesMax: 10,
  jsonKeysMax: 1_000,
  requestTimeoutMs: 5_000,
  clientStallMs: 10_000,
  drainOnShutdownMs: 0,
};

/** An answer with its body parsed. Tests say of which shape it is. */
export interface Answer<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly code: number;
    readonly param: string | null;
  };
}

export interface World {
  readonly clock: { now: number };
  readonly database: OpenDatabase;
  readonly ledger: Ledger;
  readonly keys: KeyStore;
  readonly adminKey: string;
  /** Errors that became a 5xx. */
  readonly failures: readonly unknown[];
  readonly url: string;
  readonly call: <T = unknown>(key: string | null, method: string, path: string, body?: unknown) => Promise<Answer<T>>;
  /** A funded account with a key. */
  readonly tenant: (
    name: string,
    amount?: bigint,
  ) => Promise<{ readonly account: string; readonly key: string; readonly hash: string }>;
  /** A price that locks may carry. */
  readonly price: string;
}

/** The account and admin endpoints on a real socket, over a real database and ledger. */
export async function openWorld(): Promise<World> {
  const clock = { now: Date.parse('2026-03-04T05:06:07.089Z') };
  const now = () => clock.now;
  const database = await openTestDatabase('sqlite');
  const ledger = await createLedger({ database, now });
  onTestFinished(() => ledger.close());
  const keys = createKeyStore(database, { now });
  const adminKey = createKey('admin').text;
  const { authenticate } = createKeyAuthenticator({ keys, acceptDevelopmentKeys: true, now });
  const limiter = createRateLimiter({ redis: null, now });
  const policies = createRatePolicies(LIMITS);
  const failures: unknown[] = [];

  const rates = { prompt: 1_000_000n };
  const price = priceId('provider', 'author/model', rates);
  await createPriceBook(database, now).remember([{ id: price, provider: 'provider', service: 'author/model', rates }]);

  const server = createServer({ limits: LIMITS, onError: (error) => failures.push(error) });
  const usage = createKeyUsage(database, now);
  const totals = (account: string) => accountTotals(database, account);
  await server.register(
    accountRoutes({
      refusals: { refusalsOf: () => [], since: 0 },
      limits: { limitsOf: async () => [] },
      members: { find: async () => null },
      offers: () => true,
      admit: async (headers) => {
        const caller = await authenticate(headers);
        const rate = await limiter.take(caller.key!.hash, policies.policyOf(caller), { requests: 1, tokens: 0 });
        if (!rate.allowed) throw rateLimitError(rate);
        return { caller, rate };
      },
      keys,
      nonces: { use: async () => true },
      countNewKey: async () => {},
      ledger,
      refunds: createRefunds(database, ledger),
      prices: createPriceBook(database, now),
      usage,
      findLocks: (asked) => findLocks(database, asked),
      findArchived: async () => null,
      archivedUntil: async () => 0,
      totals,
      findTransfer: async () => null,
      movements: async () => [],
      tasks: { liveStatesOf: async () => new Map() },
      receipt: (record) => (record.state === 'settled' ? `receipt-of-${record.id}` : null),
      networks: [],
      now,
    }),
    { prefix: '/api/v1' },
  );
  await server.register(
    adminRoutes({
      keyRate: () => Infinity,
      seller: async () => null,
      networks: [],
      offers: () => true,
      gate: async ({ headers }) => createAdminGuard(adminKey)(headers),
      notes: createNoteStore(database, { now }),
      refusals: { refusalsOf: () => [], since: 0 },
      consumers: createConsumerStore(database, { now }),
      log: createAdminLog(database, { now }),
      keys,
      limits: createLimitsStore(database, { now }),
      members: createMemberStore(database, { keys, limits: createLimitsStore(database, { now }), now }),
      ledger,
      refunds: createRefunds(database, ledger),
      prices: createPriceBook(database, now),
      usage,
      totals,
      findTransfer: (id) => findTransfer(database, id),
      findLocks: (asked) => findLocks(database, asked),
      findArchived: async () => null,
      endCall: null,
      isSeenProvider: async () => true,
      now,
    }),
    { prefix: '/admin/v1' },
  );
  await server.register(
    auditRoutes({
      gate: async ({ headers }) => createAdminGuard(adminKey)(headers),
      audit: async () => ({ clean: true, total: 12n }),
      auditChains: () => auditFunds(null, ledger, async () => []),
    }),
    { prefix: '/admin/v1' },
  );
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());

  return {
    clock,
    database,
    ledger,
    keys,
    adminKey,
    failures,
    url,
    price,
    async call<T>(key: string | null, method: string, path: string, body?: unknown) {
      const response = await fetch(url + path, {
        method,
        headers: {
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, headers: response.headers, body: (await response.json()) as T };
    },
    async tenant(name, amount = 10_000_000n) {
      const account = localAccount(name);
      const { text, record } = (await keys.create({ account, label: name, kind: 'live' }))!;
      if (amount > 0n)
        await ledger.transfer({
          id: `fund-${name}`,
          from: treasuryOf('operator'),
          to: escrowOf(account),
          amount,
          memo: '',
        });
      return { account, key: text, hash: record.hash };
    },
  };
}
