import cluster from 'node:cluster';
import type { Worker } from 'node:cluster';
import { availableParallelism } from 'node:os';
import { readFileSync } from 'node:fs';
import type { Config } from '#config';
import {
  createLogger,
  createLogReceivers,
  type Logger,
  createMergedMetrics,
  linesLostSnapshot,
  shareText,
  type MetricSnapshot,
} from '#observe';
import { VERSION } from '../../../foundation/version.ts';
import { CliError } from '../terminal.ts';
import { removeGatewayFile, writeGatewayFile } from '../discovery.ts';
import { listeningFacts } from './start-notices.ts';
import { catchReload, catchSignals } from './signals.ts';
import {
  COUNT_VARIABLE,
  isOurs,
  SLOT_VARIABLE,
  type SupervisorMessage,
  type WorkerMessage,
  type ReloadOutcome,
} from './worker.ts';

const COUNT_MAX = 256;
/** The time that a worker has to close everything, after the drain limit. */
const CLOSE_MS = 15_000;
/** The wait before a dead worker is replaced. It doubles each time that a worker dies soon after its start. */
const RESTART_MS = 100;
const RESTART_MS_MAX = 30_000;
const STEADY_MS = 60_000;

/** Reads `--workers`: a number of processes, or `auto` for one per core. Throws CliError for anything else. */
export function workerCount(text: string): number {
  if (text === 'auto') return availableParallelism();
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > COUNT_MAX)
    throw new CliError(`--workers takes a number from 1 to ${COUNT_MAX}, or "auto" for one per core; not "${text}".`);
  return count;
}

/**
 * Runs this command again in `count` processes that share the port, until a signal ends them. The first signal stops
 * them gracefully. A second one ends the delay for load balancers, or without a delay all processes at once. A worker
 * that dies is replaced. Resolves with false if workers cannot start: they have logged why, and this process gets their
 * exit code.
 */
export async function superviseWorkers(
  config: Config & { readonly adminKey: string },
  { count, configFile }: { readonly count: number; readonly configFile: string | null },
): Promise<boolean> {
  checkWorkers(config, count);
  const receivers = createLogReceivers(config, VERSION, () => logger);
  const log = createLogger(config, { also: receivers.take });
  const { logger } = log;
  const stop = catchSignals();
  // No worker must outlive this process. If it ends without this handler, the workers notice that their channel closes.
  const onExit = () => killAll('SIGKILL');
  process.on('exit', onExit);
  // This process hands connections to the workers. Each connection costs about 40 µs here and 25 µs there (measured),
  // and its requests cost nothing. SO_REUSEPORT would save this cost. But on macOS and Windows it does not distribute
  // connections, and connections that wait for a worker are lost if it dies.
  cluster.schedulingPolicy = cluster.SCHED_RR;

  const address = createAddress((baseUrl) => writeGatewayFile(config, { baseUrl, configFile }));
  const crew = createCrew(logger, {
    count,
    stopped: stop.requested,
    listensAt: address.listensAt,
    logLinesLost: receivers.lost,
    configFile,
  });
  const onHangUp = catchReload(crew.reload);
  try {
    if (config.redisUrl === null && count > 1)
      logger.warn(
        { workers: count },
        'no REDIS_URL: each worker counts rate limits by itself, and all together let through a multiple of them',
      );
    // The first worker starts alone: it migrates the schema, and mistakes in the configuration are reported once.
    const started =
      (await crew.start(0)) &&
      (await Promise.all(Array.from({ length: count - 1 }, (_, index) => crew.start(index + 1)))).every(Boolean);
    if (started) {
      const facts = listeningFacts(config, { address: address.announce(), file: configFile });
      logger.info({ ...facts, workers: count }, 'listening');
      await stop.requested;
      logger.info({ workers: count }, 'stopping: running calls may finish');
    }
    return started;
  } finally {
    const { shutdownDelayMs, drainOnShutdownMs } = config.limits;
    const ended = crew.end(shutdownDelayMs + drainOnShutdownMs + CLOSE_MS, stop.hurried());
    // Each worker delays its stop by itself. A signal that ends the delay here ends theirs.
    if (shutdownDelayMs > 0) void stop.delay(shutdownDelayMs).then(() => stop.hurried() && killAll('SIGINT'));
    const exits = await ended;
    const failed = exits.find(({ code, signal }) => code !== 0 && signal !== 'SIGTERM' && signal !== 'SIGINT');
    if (failed) process.exitCode = failed.code ?? 1;
    removeGatewayFile(config.dataDir);
    await receivers.close();
    await log.flush();
    process.off('exit', onExit);
    stop.forget();
    onHangUp.forget();
  }
}

/**
 * The address at which the workers listen. It is written to the discovery file once all listen, and again if it
 * changes.
 */
function createAddress(write: (baseUrl: string) => void) {
  let announced = false;
  let address = '';
  return {
    listensAt(baseUrl: string) {
      const moved = baseUrl !== address;
      address = baseUrl;
      // With port 0, the port changes if all workers have died at the same time.
      if (announced && moved) write(address);
    },
    announce() {
      announced = true;
      write(address);
      return address;
    },
  };
}

/** Keeps `count` workers running, each in its own slot, until `end` or `stopped`. */
function createCrew(
  logger: Logger,
  {
    count,
    stopped,
    listensAt,
    logLinesLost,
    configFile,
  }: {
    readonly count: number;
    readonly stopped: Promise<void>;
    readonly listensAt: (baseUrl: string) => void;
    readonly logLinesLost: () => number;
    readonly configFile: string | null;
  },
) {
  const metrics = createWorkersMetrics(logLinesLost);
  const reloads = createWorkersReload(configFile);
  const ends: Promise<Exit>[] = [];
  let stopping = false;

  const fork = (slot: number, ready: () => void): Promise<Exit> => {
    const worker = cluster.fork({ [SLOT_VARIABLE]: String(slot), [COUNT_VARIABLE]: String(count) });
    worker.on('message', (message: unknown) => {
      if (!isOurs<WorkerMessage>(message)) return;
      if (message.tollgate === 'scrape') void metrics.answer(worker, message.id, workers());
      else if (message.tollgate === 'metrics') metrics.took(worker, message.id, message.snapshot);
      else if (message.tollgate === 'reloaded') reloads.took(worker, message.id, message.outcome);
      else if (message.tollgate === 'reload-all') {
        const { id } = message;
        void reloads.all(workers()).then((outcome) => send(worker, { tollgate: 'all-reloaded', id, outcome }));
      } else {
        listensAt(message.baseUrl);
        ready();
      }
    });
    return new Promise((resolve) => {
      worker.once('exit', (code: number | null, signal: string | null) => {
        metrics.gone(worker);
        reloads.gone(worker);
        resolve({ code, signal });
      });
      worker.on('error', (error) => {
        logger.error({ err: error, worker: slot }, 'a worker cannot be started or reached');
        if (worker.process.pid === undefined) resolve({ code: 1, signal: null });
      });
    });
  };
  /** Keeps one worker running. Resolves to its exit when all stop, or if it never listened. */
  const keep = async (slot: number, ready: () => void): Promise<Exit> => {
    const nextWait = createBackOff();
    for (let listened = false; ;) {
      const startedAt = performance.now();
      const exit = await fork(slot, () => {
        listened = true;
        ready();
      });
      if (stopping || !listened) return exit;
      const waitMs = nextWait(performance.now() - startedAt);
      logger.error({ worker: slot, exit_code: exit.code, signal: exit.signal, restart_in_ms: waitMs }, 'a worker died');
      await Promise.race([stopped, new Promise((resolve) => setTimeout(resolve, waitMs))]);
      if (stopping) return { code: 0, signal: null };
    }
  };

  return {
    /**
     * Reloads the configuration of all workers. Each worker logs its result, so only other problems are logged here.
     */
    async reload() {
      const outcome = await reloads.all(workers());
      if ('problem' in outcome && !outcome.isConfig)
        logger.error({ reason: outcome.problem }, 'not all workers were reloaded');
    },
    /** Resolves to true when the worker listens. Resolves to false if it ended before, or all must stop. */
    start: (slot: number): Promise<boolean> =>
      new Promise((resolve) => {
        const end = keep(slot, () => resolve(true));
        ends.push(end);
        void Promise.race([end, stopped]).then(() => resolve(false));
      }),
    /** Stops all workers gracefully, and if `hurried` without a delay. Kills those that still run after `cutMs`. */
    async end(cutMs: number, hurried: boolean): Promise<readonly Exit[]> {
      stopping = true;
      killAll(hurried ? 'SIGINT' : 'SIGTERM');
      const cut = setTimeout(() => killAll('SIGKILL'), cutMs);
      const exits = await Promise.all(ends);
      clearTimeout(cut);
      return exits;
    },
  };
}

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

const workers = (): Worker[] => Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);

function killAll(signal: NodeJS.Signals): void {
  for (const worker of workers()) worker.process.kill(signal);
}

function createBackOff(): (aliveMs: number) => number {
  let deaths = 0;
  return (aliveMs) => {
    if (aliveMs >= STEADY_MS) deaths = 0;
    return Math.min(RESTART_MS_MAX, RESTART_MS * 2 ** deaths++);
  };
}

/** Throws CliError if the configuration cannot have so many workers. */
export function checkWorkers(config: Config, count: number): void {
  if (config.databaseUrl === null) {
    throw new CliError(
      '--workers needs PostgreSQL: the embedded database belongs to one process.\nSet DATABASE_URL=postgres://…, or leave --workers out.',
    );
  }
  const { url, port } = config.cluster;
  const last = url === null ? 0 : Math.max(port, Number(new URL(url).port || 443)) + count - 1;
  if (last > 65_535)
    throw new CliError(
      `--workers ${count} takes the ports from [cluster] port and url upwards, and there is no port ${last}.`,
    );
}

/** The longest wait for a worker's figures. If a worker does not answer, its last known figures count. */
const COLLECT_MS = 2_000;
/** The key of the supervisor's figures. Ids of workers begin at 1. */
const SUPERVISOR = 0;

/**
 * Merges the figures of all workers, whichever worker is scraped. `logLinesLost` is the count of this process, the
 * supervisor.
 */
function createWorkersMetrics(logLinesLost: () => number) {
  const merged = createMergedMetrics();
  const collections = new Map<number, { readonly missing: Set<number>; readonly done: () => void }>();
  let last = 0;
  const arrived = (worker: Worker, { missing, done }: { readonly missing: Set<number>; readonly done: () => void }) => {
    if (missing.delete(worker.id) && missing.size === 0) done();
  };
  let polled: readonly Worker[] = [];
  // Several scrapes at the same time share one collection.
  const text = shareText(async () => {
    const collection = (last += 1);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, COLLECT_MS);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      collections.set(collection, { missing: new Set(polled.map((worker) => worker.id)), done });
      for (const worker of polled) send(worker, { tollgate: 'collect', id: collection });
    });
    collections.delete(collection);
    merged.take(SUPERVISOR, await linesLostSnapshot(logLinesLost));
    return merged.text();
  });
  return {
    /** Collects the figures of all workers, and sends them to the worker that asked. */
    async answer(asker: Worker, id: number, workers: readonly Worker[]): Promise<void> {
      polled = workers;
      send(asker, { tollgate: 'scraped', id, text: await text() });
    },
    took(from: Worker, id: number, snapshot: readonly MetricSnapshot[]): void {
      // A worker's last figures may come after it was counted as ended.
      if (from.isDead()) return;
      merged.take(from.id, snapshot);
      const collection = collections.get(id);
      if (collection) arrived(from, collection);
    },
    gone(worker: Worker): void {
      merged.retire(worker.id);
      for (const collection of collections.values()) arrived(worker, collection);
    },
  };
}

function send(worker: Worker, message: SupervisorMessage): void {
  if (worker.isConnected()) worker.send(message, () => {});
}

/** The longest wait for a worker to reload. */
const RELOAD_MS = 30_000;

/** Reloads all workers from one text of the file, so that all get the same even if the file changes meanwhile. */
function createWorkersReload(configFile: string | null) {
  const waiting = new Map<string, (outcome: ReloadOutcome) => void>();
  const place = (worker: Worker, id: number) => `${worker.id}/${id}`;
  let last = 0;
  return {
    async all(workers: readonly Worker[]): Promise<ReloadOutcome> {
      const id = (last += 1);
      const text = readText(configFile);
      const outcomes = await Promise.all(
        workers.map((worker) =>
          new Promise<ReloadOutcome>((resolve) => {
            const late = { problem: `worker ${worker.id} did not answer in time`, isConfig: false };
            const timer = setTimeout(resolve, RELOAD_MS, late);
            waiting.set(place(worker, id), (outcome) => {
              clearTimeout(timer);
              resolve(outcome);
            });
            send(worker, { tollgate: 'reload', id, text });
          }).finally(() => waiting.delete(place(worker, id))),
        ),
      );
      return together(outcomes);
    },
    took(from: Worker, id: number, outcome: ReloadOutcome): void {
      waiting.get(place(from, id))?.(outcome);
    },
    gone(worker: Worker): void {
      const ended = { problem: `worker ${worker.id} ended meanwhile`, isConfig: false };
      for (const [key, tell] of waiting) if (key.startsWith(`${worker.id}/`)) tell(ended);
    },
  };
}

/**
 * The report if all workers reloaded. Else the first problem, with the number of workers that reloaded nevertheless.
 */
function together(outcomes: readonly ReloadOutcome[]): ReloadOutcome {
  const failed = outcomes.find((outcome) => 'problem' in outcome);
  if (failed === undefined) return outcomes[0] ?? { problem: 'no worker runs at the moment', isConfig: false };
  const count = outcomes.filter((outcome) => 'report' in outcome).length;
  if (count === 0) return failed;
  return {
    problem: `${failed.problem}. ${count} of ${outcomes.length} workers took the file, so calls may cost two prices: reload again`,
    isConfig: false,
  };
}

function readText(file: string | null): string | null {
  try {
    return file === null ? null : readFileSync(file, 'utf8');
  } catch {
    // The workers report what is wrong with the file.
    return null;
  }
}
