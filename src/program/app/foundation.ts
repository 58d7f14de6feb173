import type { Payments } from '#payments';
import type { ServerOptions } from '#http';
import { type Offer, offersFromConfig, withFirstSeen } from '#catalog';
import type { Config, NamedDifferences } from '#config';
import { GatewayError, GatewayStopping } from '#errors';
import {
  createLogger,
  createLogReceivers,
  createOutageLog,
  type Logger,
  type OutageLog,
  type RaisedAlerts,
} from '#observe';
import { withListedRaises } from '#network';
import { LedgerUnavailable } from '#billing';
import type { JournalWatch } from '#billing/compose';
import {
  type Database,
  DatabaseError,
  connectRedis,
  createSharedClock,
  followDatabase,
  type OpenDatabase,
  type RedisClient,
  type SharedClock,
} from '#store';
import type { Identity } from '#auth';
import { VERSION } from '../../foundation/version.ts';
import { openOwnJournaled } from './journal.ts';

export interface ReloadReport {
  readonly services: NamedDifferences;
  /** Changed prices of services, old and new. */
  readonly prices: readonly string[];
  /** Networks of chains that are open now. */
  readonly chains: readonly string[];
  /** Options that have their new value now. */
  readonly options: readonly string[];
  /**
   * Options that changed in the file but keep their old value until a restart. Chains appear as `chains eip155:8453`.
   */
  readonly restart: readonly string[];
}

export interface AppOptions {
  readonly color?: boolean;
  /** Receives complete log lines. Default: standard output. */
  readonly writeLog?: (line: string) => void;
  /** Epoch milliseconds, for times that are stored and shown. Default: the clock of the database. */
  readonly now?: () => number;
  /** The clock of this machine, in epoch milliseconds. Default: that of the system. */
  readonly wall?: () => number;
  /**
   * Milliseconds of a monotonic clock, for limits, cooldowns and durations. Default: `now` if it is given, otherwise
   * `performance.now`.
   */
  readonly elapsed?: () => number;
  readonly random?: () => number;
  /** Gives the text of `/metrics` if several processes form one gateway. */
  readonly metricsText?: () => Promise<string>;
  /** Reloads the configuration in all processes of this gateway, for `POST /admin/v1/reload`. */
  readonly reloadAll?: () => Promise<ReloadReport>;
  /** A stream that is silent for this time gets a comment as keep-alive. Default: 15 s. */
  readonly keepAliveMs?: number;
  /** Takes payments instead of the configured chains. */
  readonly payments?: Payments;
}

/** The log and the clocks of a gateway, which its database does not need. */
interface Ground {
  readonly config: Config;
  readonly options: AppOptions;
  readonly logger: Logger;
  /** Logs what fails again and again while something is away. */
  readonly outages: OutageLog;
  readonly raised: RaisedAlerts;
  /** The number of log lines that never reached the log collector. */
  readonly logLinesLost: () => number;
  /** Also hides the secrets of a configuration that is loaded later. */
  readonly hideInLogs: (config: Config) => void;
  /** Closes what the phases opened, the last one first. */
  readonly resources: AsyncDisposableStack;
  /** The clock of the database. `now` is its time, unless the options have one. */
  readonly clock: SharedClock;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number;
  readonly random: () => number;
  readonly onError: ServerOptions['onError'];
}

/** Phase 1: the parts that every phase uses. */
export interface Foundation extends Ground {
  readonly database: OpenDatabase;
  readonly journal: JournalWatch;
  readonly identity: Identity;
  /** null if none is configured. */
  readonly redis: RedisClient | null;
  /** The offers of the configuration, as they are at the start. */
  readonly offers: readonly Offer[];
  /** CAIP-2 ids of the configured chains. A reload may add some. */
  readonly networks: string[];
}

/** The database comes before all that can be built from it again. */
export async function openFoundation(
  config: Config,
  options: AppOptions,
  resources: AsyncDisposableStack,
): Promise<Foundation> {
  const ground = openGround(config, options, resources);
  const { logger, clock, now } = ground;
  const { database, journal, identity } = await openOwnJournaled(ground);
  // Before anything has a time that other gateways compare with theirs.
  await followDatabase(clock, database);
  const onError = (error: unknown) => logger.debug({ err: error }, 'the Redis connection failed');
  const redis = config.redisUrl === null ? null : await connectRedis(config.redisUrl, { onError });
  if (redis) resources.defer(() => redis.disconnect());
  const offers = await offersOf(config, { database, identity, now });
  const networks = config.chains.map(({ network }) => network);
  return { ...ground, database, journal, identity, redis, offers, networks };
}

function openGround(config: Config, options: AppOptions, resources: AsyncDisposableStack): Ground {
  const receivers = createLogReceivers(config, VERSION, () => logger);
  resources.defer(async () => {
    await receivers.close();
    await flush();
  });
  const { logger, flush, hide } = createLogger(config, {
    also: receivers.take,
    color: options.color ?? false,
    ...(options.writeLog ? { write: options.writeLog } : {}),
  });
  const elapsed = options.elapsed ?? options.now ?? performance.now.bind(performance);
  const outages = createOutageLog(logger, elapsed);
  const clock = openClock(options, outages);
  resources.defer(() => clock.close());
  return {
    config,
    options,
    logger,
    outages,
    raised: receivers.raised,
    logLinesLost: receivers.lost,
    hideInLogs: hide,
    resources,
    clock,
    now: options.now ?? clock.now,
    elapsed,
    random: options.random ?? Math.random,
    onError: createOnError(logger, outages),
  };
}

function openClock({ wall }: AppOptions, outages: OutageLog): SharedClock {
  return createSharedClock({
    ...(wall ? { wall } : {}),
    onLook(aheadMs) {
      const facts = { clock_ahead_s: Math.round(aheadMs / 1_000) };
      if (isOff(aheadMs))
        outages.failed(
          'clock',
          facts,
          "the clock of this machine is not that of the database, which the gateway goes by: set this machine's clock",
        );
      else outages.works('clock', facts, 'the clock of this machine is that of the database again');
    },
  });
}

function createOnError(logger: Logger, outages: OutageLog): ServerOptions['onError'] {
  return (error, request) => {
    const facts = { err: error, request_id: request.id, method: request.method };
    // Each call that comes during a stop gets this answer, and nobody has to do anything about it.
    if (error instanceof GatewayStopping) {
      const refused = { request_id: request.id, method: request.method, reason: error.message };
      logger.info(refused, 'refused: the gateway is shutting down');
      return;
    }
    // The attempt at its provider has a line of its own.
    if (error instanceof GatewayError && error.code === 'provider_unavailable') {
      logger.debug(facts, 'a request failed');
      return;
    }
    // While the database is away, every request fails for the same reason.
    if (isAway(error)) outages.failed('requests', facts, 'a request failed', { first: 'error' });
    else logger.error(facts, 'a request failed');
  };
}

/** How far this machine's clock may be from that of the database before its operator is told. */
const OFF_MS = 60_000;
export const isOff = (aheadMs: number): boolean => Math.abs(aheadMs) > OFF_MS;

/** Whether an error says that the database does not answer. */
export const isAway = (error: unknown): boolean =>
  error instanceof LedgerUnavailable || (error instanceof DatabaseError && error.unavailable);

/** The parts of the database that know when an offer was seen first, and what its prices were. */
interface OfferPlace {
  readonly database: Database;
  readonly identity: Identity;
  readonly now: () => number;
}

/** The offers of a configuration, with what the database knows of them. Rejects with its error. */
export async function offersOf(
  { services, tunnel }: Config,
  { database, identity, now }: OfferPlace,
): Promise<readonly Offer[]> {
  const written = offersFromConfig(services, { providerId: identity.providerId, createdAt: now() });
  const offers = await withFirstSeen(database, written);
  return withListedRaises(services, offers, { database, now: now(), noticeMs: tunnel.priceNoticeMs });
}
