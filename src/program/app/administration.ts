import type { IncomingMessage } from 'node:http';
import { createPayouts, createPriceBook, createReceiptSigner, createRefunds } from '#billing/compose';
import type { Config } from '#config';
import {
  administratorRoutes,
  adminProviderRoutes,
  adminRoutes,
  adminUsageRoutes,
  archiveRoutes,
  receiptOfRecord,
  overviewRoutes,
  reconciliationRoutes,
} from '#pages/administration';
import { COMMAND, createAdminKeys, createAdminLog, createKeyStore, logActs, noteAdministrator } from '#auth/keys';
import { createConsumerStore, createLimitsStore, createMemberStore, createNoteStore } from '#accounts';
import { identityOf, knownSeeds } from './known-identity.ts';
import { createBanStore, isSeenProvider, listProviders, registeredNames } from '#network/providers';
import { createServer } from '#http/server';
import { createSharedClock, followDatabase } from '#store';
import { accountRecords } from './account-parts.ts';
import { createArchives } from './archives.ts';
import { openJournaled, openLedger } from './journal.ts';
import { mount } from './mount.ts';
import { listedProviders, paidOfferOf } from './paid-offers.ts';
// The narrow public APIs below keep commands fast. `#pages`, `#auth`, `#network` and `#call` would load a whole
// gateway, which takes a second.

export interface Administration {
  /** Sends a request to the admin API inside this process; `path` is below `/admin/v1`. */
  request(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly text: string }>;
  close(): Promise<void>;
}

/**
 * The admin API for the accounts and keys of a database, without a gateway. No gateway of this machine may run on the
 * database. The API listens on no port, so it asks for no key. Rejects like `createApp` if the database cannot be used.
 */
export async function openAdministration(
  config: Config,
  { warn }: { readonly warn: (text: string) => void },
): Promise<Administration> {
  await using resources = new AsyncDisposableStack();
  const clock = createSharedClock();
  resources.defer(() => clock.close());
  const { now } = clock;
  const logger = { warn: (_fields: object, text: string) => warn(text) };
  const { database, journal } = await openJournaled({ config, logger, resources, now });
  await followDatabase(clock, database);
  const seeds = await knownSeeds(database);
  // Made where it is needed, because it may create the file of the identity.
  const identity = () => identityOf(config, seeds);
  const ledger = await openLedger({ database, journal, resources, now, flushMs: null }, () => {});
  const keys = createKeyStore(database, { now });
  const limits = createLimitsStore(database, { now });
  const server = createServer({ limits: config.limits, onError: (error) => warn(String(error)) });
  resources.defer(() => server.close());
  const own = new Set(config.services.map(({ service }) => service.name));
  const registered = await registeredNames(database);
  const gate = async ({ raw }: { readonly raw: IncomingMessage }) => noteAdministrator(raw, COMMAND);
  const records = accountRecords(database, now);
  const consumers = createConsumerStore(database, { now });
  const accounts = {
    gate,
    networks: config.chains.map(({ network }) => network),
    consumers,
    keys,
    limits,
    members: createMemberStore(database, { keys, limits, now }),
    offers: (name: string) => own.has(name) || registered.has(name),
    keyRate: () => config.limits.requestsPerMinute,
    // No gateway runs.
    refusals: null,
    ledger,
    refunds: createRefunds(database, ledger),
    prices: createPriceBook(database, now),
    ...records,
    async seller(account: string) {
      const seller = await records.seller(account);
      // No gateway runs on the embedded database now, so an open connection in it is one that a killed gateway left.
      return seller === null || database.engine === 'postgres' ? seller : { ...seller, isConnected: false };
    },
    now,
  };
  const log = createAdminLog(database, { now });
  const admin = adminRoutes({
    ...accounts,
    log,
    notes: createNoteStore(database, { now }),
    endCall: null,
    isSeenProvider: (provider) => isSeenProvider(database, provider),
  });
  // Names of providers are those of a running gateway.
  const usage = adminUsageRoutes({
    ...accounts,
    database,
    catalog: { offers: () => [] },
    publicUrl: config.publicUrl,
  });
  const bans = createBanStore(database, { now });
  const providers = adminProviderRoutes({
    callsNow: null,
    lastFailures: null,
    gate,
    identity: { providerId: (name) => identity().providerId(name) },
    ledger,
    payouts: createPayouts(database, ledger),
    list: (page) => listProviders(database, page),
    isSeen: (provider) => isSeenProvider(database, provider),
    isOwn: (provider) =>
      config.services.some(({ service }) => identity().providerId(service.providerName) === provider),
    ban: bans.put,
    unban: bans.remove,
    networks: config.chains.map(({ network }) => network),
  });
  const adminKeys = createAdminKeys(database, { now });
  const administrators = administratorRoutes({ gate, adminKeys, log, now });
  const networks = config.chains.map(({ network }) => network);
  const archives = createArchives({
    config,
    database,
    signer: () => createReceiptSigner(identity().receiptKey.privateKey),
    receiptOf: (record) => receiptOfRecord(record, networks),
    now,
    restTimes: 0,
  });
  resources.defer(() => archives.close());
  const reconciliation = reconciliationRoutes({
    gate,
    database,
    offers: () => config.services.flatMap(paidOfferOf),
    listed: listedProviders(config),
    now,
  });
  const overview = overviewRoutes({
    gate,
    database,
    consumers,
    providerNames: async () => {
      const seen = await listProviders(database, { limit: PROVIDERS_MAX, offset: 0 });
      const own = config.services.map(({ service: { providerName } }) => providerName);
      return new Map([
        ...seen.flatMap(({ provider, name }) => (name === null ? [] : [[provider, name] as const])),
        ...own.map((name) => [identity().providerId(name), name] as const),
      ]);
    },
    ownProviders: () => new Set(config.services.map(({ service }) => identity().providerId(service.providerName))),
    // No gateway runs.
    offers: () => [],
    lastFailures: { all: () => [] },
    gateways: { all: async () => [] },
    now,
  });
  logActs(server, { log, onError: (error) => warn(String(error)) });
  await mount(
    server,
    { admin, usage, providers, administrators, archives: archiveRoutes({ gate, archives }), reconciliation, overview },
    { prefix: '/admin/v1' },
  );
  const whole = resources.move();
  return {
    async request(method, path, body) {
      const { statusCode, body: text } = await server.inject({
        method,
        url: `/admin/v1${path}`,
        ...(body === undefined ? {} : { payload: body }),
      });
      return { status: statusCode, text };
    },
    close: () => whole.disposeAsync(),
  };
}

const PROVIDERS_MAX = 1_000;
