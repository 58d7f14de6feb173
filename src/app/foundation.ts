import type { Config } from '#config';
import type { ServerOptions } from '#gateway';
import { GatewayStopping } from '#wire';
import { createLogger, createLogReceivers, createOutageLog, type Logger, type OutageLog } from '#observe';
import { VERSION } from '../version.ts';
import { isAway } from './is-away.ts';
import { createLateBound, type LateBound } from './late-bound.ts';
import type { AppOptions } from './options.ts';

/** The parts that every phase of a start uses. */
export interface Foundation {
  readonly config: Config;
  readonly options: AppOptions;
  readonly logger: Logger;
  /** Logs what fails again and again while something is away. */
  readonly outages: OutageLog;
  /** The number of log lines that never reached the log collector. */
  readonly logLinesLost: () => number;
  /** Also hides the secrets of a configuration that is loaded later. */
  readonly hideInLogs: (config: Config) => void;
  /** Closes what the phases opened, the last one first. */
  readonly opened: AsyncDisposableStack;
  readonly late: LateBound;
  /** CAIP-2 ids of the configured chains. A reload may add some. */
  readonly networks: string[];
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number;
  readonly random: () => number;
  readonly onError: ServerOptions['onError'];
}

/** The parts that a phase resolves with. */
export type Opened<Open extends (...args: never[]) => unknown> = Awaited<ReturnType<Open>>;

export function openFoundation(config: Config, options: AppOptions, opened: AsyncDisposableStack): Foundation {
  const { now = Date.now, random = Math.random } = options;
  const receivers = createLogReceivers(config, VERSION, () => logger);
  opened.defer(async () => {
    await receivers.close();
    await flush();
  });
  const { logger, flush, hide } = createLogger(config, {
    also: receivers.take,
    color: options.color ?? false,
    ...(options.writeLog ? { write: options.writeLog } : {}),
  });
  const elapsed = options.elapsed ?? options.now ?? (() => performance.now());
  const outages = createOutageLog(logger, elapsed);
  return {
    config,
    options,
    logger,
    outages,
    logLinesLost: receivers.lost,
    hideInLogs: hide,
    opened,
    late: createLateBound(),
    networks: config.chains.map(({ network }) => network),
    now,
    elapsed,
    random,
    onError(error, request) {
      const facts = { err: error, request_id: request.id, method: request.method };
      // Each call that comes during a stop gets this answer, and nobody has to do anything about it.
      if (error instanceof GatewayStopping) {
        const refused = { request_id: request.id, method: request.method, reason: error.message };
        logger.info(refused, 'refused: the gateway is shutting down');
        return;
      }
      // While the database is away, every request fails for the same reason.
      if (isAway(error)) outages.failed('requests', facts, 'a request failed', { first: 'error' });
      else logger.error(facts, 'a request failed');
    },
  };
}
