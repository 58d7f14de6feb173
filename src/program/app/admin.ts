import { earningsOf } from '#billing';
import { createPayouts } from '#billing/compose';
import {
  adminSessionRoutes,
  createAdminGate,
  createAdminKeys,
  createAdminLog,
  createAdminSessions,
  createAttempts,
  gateWithKey,
  logActs,
} from '#auth';
import { createConsumerStore, createNoteStore } from '#accounts';
import { listBooks } from '#chains';
import { type Catalog, isOwn } from '#catalog';
import { isSeenProvider, listProviders } from '#network';
import { type GatewayReports, metricsRoutes, readCallsNow, shareText } from '#observe';
import {
  adminFiguresRoutes,
  adminUsageRoutes,
  adminFundsRoutes,
  adminProviderRoutes,
  adminRoutes,
  administratorRoutes,
  archiveRoutes,
  auditRoutes,
  receiptOfRecord,
  reloadRoutes,
} from '#pages';
import {
  type Archives,
  identityRoutes,
  listReconciliations,
  operatorServicesRoutes,
  overviewRoutes,
  reconciliationRoutes,
} from '#pages/administration';
import { auditFunds } from '#payments/on-chains';
import type { AccountParts } from './accounts.ts';
import { createArchives } from './archives.ts';
import { createTestCall } from './test-call.ts';
import type { Phases } from './calls.ts';
import type { Analytics } from './figures.ts';
import { mount } from './mount.ts';
import { listedProviders, paidOfferOfCatalog } from './paid-offers.ts';
import type { Protocols } from './protocols.ts';
import { seedReport } from './seed-uses.ts';

const ADMIN = { prefix: '/admin/v1' };

export async function mountAdministration(
  phases: Phases,
  parts: AccountParts,
  protocols: Protocols,
  { rollUp, gateways }: Analytics & { readonly gateways: GatewayReports },
): Promise<void> {
  const { config, database, identity, networks, options, logger, outages, now, elapsed } = phases.foundation;
  const { metrics, lastFailures } = phases.observers;
  const { ledger, chains } = phases.money;
  const { http, browsers, states, people } = phases.access;
  const { registry } = phases.network;
  const { sessions, cookies } = browsers;
  const { server, catalog } = http;
  const { adminKey } = config;
  const metricsText = options.metricsText ?? metrics.text;
  const sharedText = shareText(metricsText);
  const attempts = createAttempts({ perMinute: config.signIn.failuresPerMinute, now: elapsed });
  const adminKeys = createAdminKeys(database, { now });
  const adminSessions = createAdminSessions({
    sessions,
    cookies,
    adminKey,
    adminKeys,
    attempts,
    secret: identity.accepted('admin sessions'),
    ...(people && { rolesOf: people.rolesOf }),
    now,
  });
  const log = createAdminLog(database, { now });
  const gate = createAdminGate({
    adminKey,
    adminKeys,
    log,
    adminSessions,
    networks: config.adminNetworks,
    attempts,
    onGuesses: (guesses) =>
      logger.warn(guesses, 'wrong admin keys; `failures` are those of this minute, from all addresses'),
    now,
  });
  const consumers = createConsumerStore(database, { now, states });
  const usage = adminUsageRoutes({ ...parts, gate, consumers, database, catalog, publicUrl: config.publicUrl });
  const admin = adminRoutes({
    ...parts,
    gate,
    consumers,
    notes: createNoteStore(database, { now }),
    log,
    endCall: protocols.endCall.anywhere,
  });
  const payouts = createPayouts(database, ledger);
  const providers = adminProviderRoutes({
    gate,
    identity,
    ledger,
    payouts,
    list: (page) => listProviders(database, page),
    callsNow: async () => readCallsNow(await sharedText()),
    lastFailures,
    isSeen: (provider) => isSeenProvider(database, provider),
    isOwn: (id) => catalog.offers().some(({ provider, endpoint }) => provider.id === id && endpoint.kind !== 'tunnel'),
    ban: registry.ban,
    unban: registry.unban,
    networks,
  });
  const { funds } = chains;
  const auditChains = () => auditFunds(funds, ledger, () => listBooks(database));
  const audit = auditRoutes({ gate, audit: phases.money.audit, auditChains });
  const adminFunds = adminFundsRoutes({ gate, contractNetworks: networks, consumers, funds, ledger });
  const adminFigures = adminFiguresRoutes({ gate, rollUp });
  const archives = openArchives(phases);
  const reconciliation = reconciliationRoutes({
    gate,
    database,
    offers: () => catalog.offers().flatMap(paidOfferOfCatalog),
    listed: listedProviders(config),
    now,
  });
  metrics.showReconciliations(async () =>
    (await listReconciliations(database)).map(({ at, result }) => ({ at, ...result })),
  );
  const services = operatorServicesRoutes({
    gate,
    identity,
    catalog,
    health: phases.network.routing.health,
    registry,
    lastFailures,
    gateways,
    database,
    payouts,
    findProvider: async (provider) =>
      (await listProviders(database, { limit: PROVIDERS_MAX, offset: 0 })).find((each) => each.provider === provider) ??
      null,
    earnings: async (provider) => (await ledger.balance(earningsOf(provider)))?.available ?? 0n,
    testCall: createTestCall({ server, keys: parts.keys, ledger, now }),
    now,
  });
  const overview = overviewRoutes({
    gate,
    database,
    consumers,
    providerNames: () => providerNames(database, catalog),
    ownProviders: () => new Set(catalog.offers().flatMap((offer) => (isOwn(offer) ? [offer.provider.id] : []))),
    offers: catalog.offers,
    lastFailures,
    gateways,
    now,
  });
  const identityReport = identityRoutes({ gate, report: () => seedReport(phases, protocols) });
  const reload = reloadRoutes({ gate, reload: options.reloadAll ?? null });
  const routes = {
    session: adminSessionRoutes({ gate, networks: config.adminNetworks, adminSessions, cookies }),
    admin,
    usage,
    providers,
    administrators: administratorRoutes({ gate, adminKeys, log, now }),
    audit,
    adminFunds,
    adminFigures,
    archives: archiveRoutes({ gate, archives }),
    reload,
    reconciliation,
    overview,
    services,
    identity: identityReport,
  };
  const onError = (error: unknown) =>
    outages.failed('log of changes', { err: error }, 'the outcome of a change could not be logged');
  const logged = async (app: typeof server) => {
    logActs(app, { log, onError });
    await mount(app, routes);
  };
  await mount(server, { administration: logged }, ADMIN);
  const metricsPage = { contentType: metrics.contentType, text: metricsText };
  await mount(server, {
    metrics: metricsRoutes({
      metrics: metricsPage,
      access: config.metrics,
      gate: gateWithKey(gate, config.metricsKey),
    }),
  });
}

/** Archives of the ledger. A run that was killed while it dropped rows goes on now, beside the calls. */
function openArchives({ foundation, money }: Phases): Archives {
  const { config, database, networks, now, resources, logger } = foundation;
  const archives = createArchives({
    config,
    database,
    signer: () => money.receipts,
    receiptOf: (record) => receiptOfRecord(record, networks),
    now,
    restTimes: ARCHIVE_REST_TIMES,
  });
  resources.defer(() => archives.close());
  archives.finish().then(
    (name) => name !== null && logger.info({ archive: name }, 'the rest of the rows of an archive was dropped'),
    (error: unknown) => logger.warn({ err: error }, 'the rows of an archive cannot be dropped'),
  );
  return archives;
}

/** An archive takes a third of the time of the event loop at most, in turns of a few milliseconds. */
const ARCHIVE_REST_TIMES = 2;

/** Names of the providers that are or were here. */
async function providerNames(
  database: Phases['foundation']['database'],
  catalog: Pick<Catalog, 'offers'>,
): Promise<ReadonlyMap<string, string>> {
  const seen = await listProviders(database, { limit: PROVIDERS_MAX, offset: 0 });
  return new Map([
    ...seen.flatMap(({ provider, name }) => (name === null ? [] : [[provider, name] as const])),
    ...catalog.offers().map(({ provider }) => [provider.id, provider.name] as const),
  ]);
}
const PROVIDERS_MAX = 1_000;
