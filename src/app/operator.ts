import { accountTotals, createPayouts, findLocks, findTransfer, listMovements, type LocksQuery } from '#billing';
import {
  adminSessionRoutes,
  createAdminGate,
  createAttempts,
  createAdminKeys,
  createAdminLog,
  createAdminSessions,
  createConsumerStore,
  logActs,
  nonceRoutes,
  sessionRoutes,
} from '#auth';
import { listBooks } from '#chains';
import { findSeller, isSeenProvider, listProviders } from '#network';
import { createDatabaseCheck, healthRoutes, metricsRoutes } from '#observe';
import {
  accountRoutes,
  addKeySetRoute,
  adminFiguresRoutes,
  adminFundsRoutes,
  administratorRoutes,
  adminProviderRoutes,
  adminRoutes,
  auditFunds,
  auditRoutes,
  createEarnings,
  createFigurePages,
  createKeyUsage,
  fundsRoutes,
  limitsRoutes,
  marketRoutes,
  membersRoutes,
  ownFiguresRoutes,
  ownPages,
  publicFiguresRoutes,
  reloadRoutes,
} from '#pages';
import { modelsRoutes } from '#openai';
import { mount } from './mount.ts';
import { openAnalytics, type Analytics } from './analytics.ts';
import type { Protocols } from './protocols.ts';
import { openSweeper } from './sweep.ts';

/**
 * Phase 5: the routes beside the protocols, for visitors, for owners of accounts, for the operator and for monitoring.
 * It also starts the removal of old rows.
 */
export async function openOperator(protocols: Protocols) {
  const analytics = await openAnalytics(protocols);
  await mountFigures(protocols, analytics);
  await mountMarket(protocols);
  await mountAccounts(protocols);
  await mountAdministration(protocols, analytics);
  await mountHealth(protocols);
  const {
    server,
    opened,
    receipts,
    cardKey,
    idempotency,
    nonces,
    keptFigures,
    blobs,
    keptResponses,
    background,
    config,
  } = protocols;
  addKeySetRoute(server, [...receipts.jwks().keys, cardKey.jwk]);
  const sweeper = openSweeper(
    protocols,
    {
      idempotency,
      nonces,
      sessions: protocols.browsers.sessions,
      keptFigures,
      quotes: protocols.quotes,
      blobs,
      keptResponses,
      ...(background && { background }),
      notices: protocols.notices,
      oldUsage: analytics.oldUsage,
    },
    config.billing.sweepMs,
  );
  opened.defer(() => sweeper.close());
  return { analytics };
}

const PREFIX = { prefix: '/api/v1' };
const ADMIN_PREFIX = { prefix: '/admin/v1' };

/** The market's pages, and the pages of providers. */
async function mountMarket(protocols: Protocols): Promise<void> {
  const { server, catalog, health, registry, database, networks, now } = protocols;
  const { admit } = protocols.pipeline;
  const { listings } = protocols.mcp;
  const { identity, keys } = protocols;
  const earnings = createEarnings(database);
  const payouts = createPayouts(database, protocols.ledger);
  const { payoutRules } = protocols;
  const pages = {
    nonces: nonceRoutes(protocols),
    models: modelsRoutes({ catalog, health, registry, admit, now }),
    market: marketRoutes({ catalog, health, registry, listings, now }),
    ofProviders: ownPages({ admit, keys, identity, registry, health, earnings, payouts, payoutRules, networks, now }),
  };
  await mount(server, pages, PREFIX);
}

/** Figures of calls by day. */
async function mountFigures(protocols: Protocols, { rollUp }: Analytics): Promise<void> {
  const { server, config, database, catalog, now } = protocols;
  const pages = createFigurePages(database, rollUp);
  const { admit } = protocols.pipeline;
  const figures = {
    publicFigures: publicFiguresRoutes({ config, pages, database, catalog, now }),
    ownFigures: ownFiguresRoutes({ admit, keys: protocols.keys, database, catalog, now }),
  };
  await mount(server, figures, PREFIX);
}

/** The parts that owners of accounts and the operator share. */
function accountParts({ catalog, database, keys, limits, members, ledger, networks, now }: Protocols) {
  return {
    keys,
    limits,
    members,
    ledger,
    networks,
    offers: (name: string) => catalog.offers().some(({ service }) => service === name),
    totals: (account: string) => accountTotals(database, account),
    seller: (account: string) => findSeller(database, account),
    findTransfer: (id: string) => findTransfer(database, id),
    findLocks: (asked: LocksQuery) => findLocks(database, asked),
    usage: createKeyUsage(database, now),
    now,
  };
}

async function mountAccounts(protocols: Protocols): Promise<void> {
  const { server, database, nonces, pastReceipts, config, networks } = protocols;
  const { admit, countNewKey } = protocols.pipeline;
  const accounts = accountRoutes({
    ...accountParts(protocols),
    admit,
    countNewKey,
    nonces,
    movements: (...asked) => listMovements(database, ...asked),
    tasks: protocols.tasks,
    receipt: pastReceipts.ofRecord,
  });
  const { count } = protocols.pipeline;
  const development = config.mode === 'development';
  const sessions = sessionRoutes({ ...protocols, admit, count, development, networks });
  const funds = fundsRoutes({ ...protocols, admit, networks });
  const { allowPrivate } = config.webhooks;
  const limits = limitsRoutes({ ...accountParts(protocols), admit, nonces, notices: protocols.notices, allowPrivate });
  const members = membersRoutes({ ...accountParts(protocols), admit, nonces });
  await mount(server, { accounts, sessions, funds, limits, members }, PREFIX);
}

async function mountAdministration(protocols: Protocols, { rollUp }: Analytics): Promise<void> {
  const { server, config, database, ledger, funds, networks, metrics, options, logger, outages, now } = protocols;
  const { sessions, cookies } = protocols.browsers;
  const { adminKey } = config;
  const attempts = createAttempts({ perMinute: config.signIn.failuresPerMinute, now: protocols.elapsed });
  const adminSessions = createAdminSessions({
    sessions,
    cookies,
    adminKey,
    attempts,
    secret: protocols.identity.secret('admin sessions'),
  });
  const adminKeys = createAdminKeys(database, { now });
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
  const consumers = createConsumerStore(database, { now, states: protocols.states });
  const admin = adminRoutes({
    ...accountParts(protocols),
    gate,
    consumers,
  });
  const payouts = createPayouts(database, ledger);
  const providers = adminProviderRoutes({
    gate,
    identity: protocols.identity,
    ledger,
    payouts,
    list: (page) => listProviders(database, page),
    isSeen: (provider) => isSeenProvider(database, provider),
    isOwn: (id) =>
      protocols.catalog.offers().some(({ provider, endpoint }) => provider.id === id && endpoint.kind !== 'tunnel'),
    ban: protocols.registry.ban,
    unban: protocols.registry.unban,
    networks,
  });
  const auditChains = () => auditFunds(funds, ledger, () => listBooks(database));
  const audit = auditRoutes({ gate, audit: protocols.audit, auditChains });
  const adminFunds = adminFundsRoutes({ gate, contractNetworks: networks, consumers, funds, ledger });
  const adminFigures = adminFiguresRoutes({ gate, rollUp });
  const reload = reloadRoutes({ gate, reload: options.reloadAll ?? null });
  const routes = {
    session: adminSessionRoutes({ gate, networks: config.adminNetworks, adminSessions, cookies }),
    admin,
    providers,
    administrators: administratorRoutes({ gate, adminKeys, log, now }),
    audit,
    adminFunds,
    adminFigures,
    reload,
  };
  const onError = (error: unknown) =>
    outages.failed('log of changes', { err: error }, 'the outcome of a change could not be logged');
  const logged = async (app: typeof server) => {
    logActs(app, { log, onError });
    await mount(app, routes);
  };
  await mount(server, { administration: logged }, ADMIN_PREFIX);
  const { contentType, text } = metrics;
  const shown = { contentType, text: options.metricsText ?? text };
  await mount(server, { metrics: metricsRoutes({ metrics: shown, access: config.metrics, gate }) });
}

async function mountHealth({ server, registry, logger, drain, funds }: Protocols): Promise<void> {
  const checkDatabase = createDatabaseCheck({
    write: () => registry.renew(),
    onChange: (works, error) =>
      works
        ? logger.info('the database can be written to again')
        : logger.error({ err: error }, 'the database cannot be written to: calls are refused'),
  });
  // A late comparison does not make the gateway unready, because the ledger records every debt.
  const treasuries = () => {
    if (funds === null) return {};
    const late = funds.chains.late();
    return {
      treasuries: late.length === 0 ? 'ok' : `were not compared with the books for too long: ${late.join(', ')}`,
    };
  };
  const ready = async () => {
    if (drain.announced()) return { ready: false, checks: { gateway: 'is shutting down' } };
    const state = await checkDatabase();
    return { ready: state === 'ok', checks: { gateway: 'ok', database: state, ...treasuries() } };
  };
  await mount(server, { health: healthRoutes({ ready }) });
}
