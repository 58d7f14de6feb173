import { accountTotals, createPayouts, findLocks, listMovements, expireAll } from '#billing/compose';
import { archivedUntil, findArchivedCall, findTransfer, type LocksQuery, type Ledger } from '#billing';
import {
  adminSessionRoutes,
  createAdminGate,
  createAttempts,
  createAdminKeys,
  createAdminLog,
  createAdminSessions,
  logActs,
  nonceRoutes,
  sessionRoutes,
} from '#auth';
import { createConsumerStore } from '#accounts';
import { listBooks } from '#chains';
import { findSeller, isSeenProvider, listProviders } from '#network';
import {
  createDatabaseCheck,
  healthRoutes,
  metricsRoutes,
  readCallsNow,
  shareText,
  type Logger,
  type OutageLog,
} from '#observe';
import {
  accountRoutes,
  addKeySetRoute,
  adminFiguresRoutes,
  adminFundsRoutes,
  administratorRoutes,
  archiveRoutes,
  adminProviderRoutes,
  adminRoutes,
  auditRoutes,
  createEarnings,
  createFigurePages,
  createKeyUsage,
  fundsRoutes,
  limitsRoutes,
  providerKeysRoutes,
  marketRoutes,
  receiptOfRecord,
  membersRoutes,
  ownFiguresRoutes,
  ownPages,
  publicFiguresRoutes,
  reloadRoutes,
} from '#pages';
import { auditFunds } from '#payments/on-chains';
import { modelsRoutes } from '#openai';
import { createKnownAccounts, createOldUsage, createRollUp, findRecentTimes, recentUsers } from '#analytics';
import { mountAuthorization } from './authorization.ts';
import { mount } from './mount.ts';
import type { Protocols } from './protocols.ts';
import { createArchives } from './archives.ts';
import { createEndCall } from './end-call.ts';
import { isAway, isOff } from './foundation.ts';
import { longestLockMs } from '#call/compose';

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
    batches,
    files,
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
      files,
      batches,
      notices: protocols.notices,
      oldUsage: analytics.oldUsage,
      ...(protocols.authorizationState && { authorization: protocols.authorizationState }),
    },
    {
      everyMs: config.billing.sweepMs,
      longestLockMs: longestLockMs(config.upstream.callTimeoutMs, protocols.graceMs),
    },
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
    models: modelsRoutes({ catalog, health, registry, admit }),
    market: marketRoutes({ catalog, health, registry, listings, now }),
    ofProviders: ownPages({
      admit,
      keys,
      identity,
      registry,
      health,
      listings,
      lastFailures: protocols.lastFailures,
      earnings,
      payouts,
      payoutRules,
      networks,
      now,
    }),
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
function accountParts({ catalog, database, keys, limits, policies, members, ledger, networks, now }: Protocols) {
  return {
    keys,
    limits,
    members,
    ledger,
    networks,
    offers: (name: string) => catalog.offers().some(({ service }) => service === name),
    keyRate: policies.ofKey,
    totals: (account: string) => accountTotals(database, account),
    seller: (account: string) => findSeller(database, account),
    findTransfer: (id: string) => findTransfer(database, id),
    findLocks: (asked: LocksQuery) => findLocks(database, asked),
    findArchived: (id: string, account: string | null) => findArchivedCall(database.query, id, account),
    usage: createKeyUsage(database, now),
    now,
  };
}

async function mountAccounts(protocols: Protocols): Promise<void> {
  const { server, database, nonces, pastReceipts, config, networks } = protocols;
  const { admit, countNewKey } = protocols.pipeline;
  const accounts = accountRoutes({
    ...accountParts(protocols),
    archivedUntil: () => archivedUntil(database.query),
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
  const { providerKeys, keys, catalog } = protocols;
  const ownKeys = providerKeysRoutes({ admit, keys, nonces, providerKeys, catalogued: () => catalog.offers() });
  await mount(server, { accounts, sessions, funds, limits, members, ownKeys }, PREFIX);
  await mountAuthorization(protocols, accountParts(protocols));
}

async function mountAdministration(protocols: Protocols, { rollUp }: Analytics): Promise<void> {
  const { server, config, database, ledger, funds, networks, metrics, options, logger, outages, now } = protocols;
  const { sessions, cookies } = protocols.browsers;
  const { adminKey } = config;
  const metricsText = options.metricsText ?? metrics.text;
  const sharedText = shareText(metricsText);
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
    endCall: createEndCall({ ...protocols, endHere: protocols.late.endCall }),
  });
  const payouts = createPayouts(database, ledger);
  const providers = adminProviderRoutes({
    gate,
    identity: protocols.identity,
    ledger,
    payouts,
    list: (page) => listProviders(database, page),
    callsNow: async () => readCallsNow(await sharedText()),
    lastFailures: protocols.lastFailures,
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
  const archives = openArchives(protocols);
  const reload = reloadRoutes({ gate, reload: options.reloadAll ?? null });
  const routes = {
    session: adminSessionRoutes({ gate, networks: config.adminNetworks, adminSessions, cookies }),
    admin,
    providers,
    administrators: administratorRoutes({ gate, adminKeys, log, now }),
    audit,
    adminFunds,
    adminFigures,
    archives: archiveRoutes({ gate, archives }),
    reload,
  };
  const onError = (error: unknown) =>
    outages.failed('log of changes', { err: error }, 'the outcome of a change could not be logged');
  const logged = async (app: typeof server) => {
    logActs(app, { log, onError });
    await mount(app, routes);
  };
  await mount(server, { administration: logged }, ADMIN_PREFIX);
  const shown = { contentType: metrics.contentType, text: metricsText };
  await mount(server, { metrics: metricsRoutes({ metrics: shown, access: config.metrics, gate }) });
}

/** Archives of the ledger. A run that was killed while it dropped rows goes on now, beside the calls. */
function openArchives({ config, database, receipts, networks, now, opened, logger }: Protocols) {
  const archives = createArchives({
    config,
    database,
    signer: () => receipts,
    receiptOf: (record) => receiptOfRecord(record, networks),
    now,
    restTimes: ARCHIVE_REST_TIMES,
  });
  opened.defer(() => archives.close());
  archives.finish().then(
    (name) => name !== null && logger.info({ archive: name }, 'the rest of the rows of an archive was dropped'),
    (error: unknown) => logger.warn({ err: error }, 'the rows of an archive cannot be dropped'),
  );
  return archives;
}

/** An archive takes a third of the time of the event loop at most, in turns of a few milliseconds. */
const ARCHIVE_REST_TIMES = 2;

async function mountHealth({
  server,
  database,
  registry,
  ledger,
  logger,
  drain,
  funds,
  late,
  clock,
}: Protocols): Promise<void> {
  const checkDatabase = createDatabaseCheck({
    write: () => registry.renew(),
    ledger: ledger.probe,
    onChange: (problem, error) => {
      if (problem === null) logger.info('the database can be written to again');
      else if (problem === 'database')
        logger.error({ err: error }, 'the database cannot be written to: calls are refused');
      else logger.error({ err: error }, 'the ledger takes no operations: calls are refused');
    },
  });
  const databaseWorks = async () => (await checkDatabase()) === 'ok';
  late.databaseWorks = databaseWorks;
  // A late comparison does not make the gateway unready, because the ledger records every debt.
  const treasuries = () => {
    if (funds === null) return {};
    const late = funds.chains.late();
    return {
      treasuries: late.length === 0 ? 'ok' : `were not compared with the books for too long: ${late.join(', ')}`,
    };
  };
  // Neither does a wrong clock of this machine, because the gateway goes by that of the database.
  const ofClock = () => {
    if (database.engine === 'sqlite') return {};
    const aheadMs = clock.aheadMs();
    const [seconds, where] = [Math.round(Math.abs(aheadMs) / 1_000), aheadMs > 0 ? 'ahead of' : 'behind'];
    return { clock: isOff(aheadMs) ? `is ${seconds} s ${where} that of the database` : 'ok' };
  };
  const ready = async () => {
    if (drain.announced()) return { ready: false, checks: { gateway: 'is shutting down' } };
    const state = await checkDatabase();
    return { ready: state === 'ok', checks: { gateway: 'ok', database: state, ...ofClock(), ...treasuries() } };
  };
  await mount(server, { health: healthRoutes({ ready }) });
}

const ACCOUNTS_MS = 60_000;
/** With fewer users, the volume of a day reveals what each of them pays. */
const FEW_USERS = 5;

export type Analytics = Awaited<ReturnType<typeof openAnalytics>>;

/** The figures of calls by day, and the count of new accounts. Both follow the journal. */
async function openAnalytics(protocols: Protocols) {
  const { config, database, outages, opened, now } = protocols;
  const { everyMs, retentionDays } = config.analytics;
  const isOff = everyMs === 0;
  const rollUp = createRollUp({
    database,
    now,
    everyMs: isOff ? null : everyMs,
    onError: (error) =>
      outages.failed('figures', { err: error }, 'calls cannot be added to the figures; it is tried again'),
    ...(database.engine === 'sqlite' ? { end: () => database.log.head.n } : {}),
  });
  opened.defer(() => rollUp.close());
  const accounts = createKnownAccounts({
    database,
    now,
    everyMs: isOff ? null : ACCOUNTS_MS,
    onError: (error) => outages.failed('accounts', { err: error }, 'new accounts cannot be counted; it is tried again'),
  });
  opened.defer(() => accounts.close());
  await warnOfFewUsers(protocols);
  await recallTimes(protocols);
  return { rollUp, accounts, oldUsage: createOldUsage({ database, now, days: retentionDays }) };
}

/** Restores the recent speeds of offers from before the start, because routing uses them. New calls replace them. */
async function recallTimes({ database, health, now }: Protocols): Promise<void> {
  for (const { offer, firstByteMs, tokensPerSecond } of await findRecentTimes(database.query, now()))
    health.recall(offer, firstByteMs, tokensPerSecond);
}

/** Warns if the public figures would reveal the spending of single users, because the market has few. */
async function warnOfFewUsers({ config, database, logger, now }: Protocols): Promise<void> {
  const { public: isPublic, usersMin } = config.analytics;
  if (config.mode !== 'production' || isPublic === 'off' || usersMin > 0) return;
  const users = await recentUsers(database, now());
  if (users === 0 || users >= FEW_USERS) return;
  logger.warn(
    { users },
    'the public figures show what few users pay: analytics.users_min keeps such days back, analytics.public = "off" all of them',
  );
}

/** A store whose rows expire. `sweep` removes at most `batch` of them and resolves with the number of removed rows. */
interface Swept {
  sweep(batch: number): Promise<number>;
}

interface SweeperOptions {
  readonly ledger: Ledger;
  readonly logger: Logger;
  readonly outages: OutageLog;
  readonly now: () => number;
  readonly elapsed: () => number;
}

const BATCH = 1_000;
/** If the time goes on by so much more than a monotonic clock, the clock was set, or this machine was suspended. */
const JUMP_MS = 30_000;

/**
 * Every `everyMs`, expires overdue locks and removes old rows of the stores, which have names for the log. After a
 * failure the next sweep tries again. `close` resolves when no sweep is running.
 *
 * After a jump of the time, locks of calls that run would be overdue. So none expires before all that were made before
 * the jump have had their time, `longestLockMs`.
 */
export function openSweeper(
  { ledger, logger, outages, now, elapsed }: SweeperOptions,
  swept: Readonly<Record<string, Swept>>,
  { everyMs, longestLockMs }: { readonly everyMs: number; readonly longestLockMs: number },
): { close(): Promise<void> } {
  let last = { now: now(), elapsed: elapsed() };
  let restUntil = -Infinity;
  const isResting = (): boolean => {
    const before = last;
    last = { now: now(), elapsed: elapsed() };
    const jumpMs = last.now - before.now - (last.elapsed - before.elapsed);
    if (jumpMs > JUMP_MS) {
      restUntil = last.elapsed + longestLockMs;
      logger.warn(
        { jump_s: Math.round(jumpMs / 1_000), rest_s: Math.round(longestLockMs / 1_000) },
        'the time went forward by a jump: no lock expires until the calls that run have had their time',
      );
    }
    return last.elapsed < restUntil;
  };
  let running: Promise<void> | null = null;
  let closed = false;
  /** Resolves with the error if the database is away. Every other error is logged at once. */
  const expireLocks = async (): Promise<unknown> => {
    try {
      if (isResting()) return null;
      const expired = await expireAll(ledger, now());
      if (expired > 0) logger.warn({ locks: expired }, 'locks expired');
    } catch (error) {
      if (isAway(error)) return error;
      outages.failed('locks', { err: error }, 'the sweep of expired locks failed; it is tried again');
    }
    return null;
  };
  const sweepStore = async (name: string, store: Swept): Promise<unknown> => {
    try {
      for (let count = BATCH; count === BATCH && !closed;) count = await store.sweep(BATCH);
    } catch (error) {
      if (isAway(error)) return error;
      const text = 'old rows of a store could not be removed; it is tried again';
      outages.failed(`rows of ${name}`, { err: error, store: name }, text);
    }
    return null;
  };
  const sweep = async () => {
    // Everything here uses the same database, so one line tells that it is away.
    let away = await expireLocks();
    for (const [name, store] of Object.entries(swept)) away = (await sweepStore(name, store)) ?? away;
    if (away !== null)
      outages.failed(
        'sweep',
        { err: away },
        'expired locks and old rows could not be removed, because the database does not answer; it is tried again',
      );
    running = null;
  };
  // A sweep can take longer than `everyMs`.
  const timer = setInterval(() => {
    running ??= sweep();
  }, everyMs);
  return {
    async close() {
      closed = true;
      clearInterval(timer);
      await running;
    },
  };
}
