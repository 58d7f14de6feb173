import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { createLogger, type Config } from '#gateway';
import { CliError } from './cli-error.ts';
import { removeGatewayFile, writeGatewayFile } from './discovery.ts';
import { catchSignals } from './signals.ts';
import { isOurs, SLOT_VARIABLE, type WorkerMessage } from './workers-messages.ts';
import { createWorkersMetrics } from './workers-metrics.ts';

const COUNT_MAX = 256;
/** What a worker may take beyond the drain limit to close everything. */
const CLOSE_MS = 15_000;
/** Wait before a worker that died is replaced: this long, and twice as long each time that one dies soon after its start. */
const RESTART_MS = 100;
const RESTART_MS_MAX = 30_000;
const STEADY_MS = 60_000;

/** `--workers`: a number of processes, or `auto` for one per core. */
export function workerCount(text: string): number {
  if (text === 'auto') return availableParallelism();
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > COUNT_MAX) throw new CliError(`--workers takes a number from 1 to ${COUNT_MAX}, or "auto" for one per core; not "${text}".`);
  return count;
}

/**
 * Runs this command again in `count` processes that share the port, until a signal ends them: the first stops them gracefully, a second at once.
 * One that dies is replaced. When they cannot start, each has said why, and the exit code is theirs.
 */
export async function superviseWorkers(config: Config & { readonly adminKey: string }, count: number): Promise<void> {
  check(config, count);
  const log = createLogger(config);
  const { logger } = log;
  const stop = catchSignals();
  // However this process ends while it can still do something: no worker outlives it. Where it cannot, they see their channel close.
  const onExit = () => {
    killAll('SIGKILL');
    log.flush();
  };
  process.on('exit', onExit);
  // Connections are handed to one worker after the other. Unlike SO_REUSEPORT this works on every system, shares out long connections evenly,
  // loses none that wait when a worker dies, and costs a connection about as much as one request.
  cluster.schedulingPolicy = cluster.SCHED_RR;

  const metrics = createWorkersMetrics();
  let stopping = false;
  let address: string | null = null;
  const announce = (baseUrl: string) => {
    // Port 0 becomes another one when all workers died at the same time.
    if (address !== baseUrl) writeGatewayFile(config.dataDir, { base_url: baseUrl, admin_key: config.adminKey, pid: process.pid });
    address = baseUrl;
  };

  /** Keeps one worker running until the end. Calls back whenever it listens; resolves with how it ended: at the end, or without ever having listened. */
  const keep = async (slot: number, listens: (baseUrl: string) => void): Promise<Exit> => {
    const nextWait = createBackOff();
    for (let listened = false; ;) {
      const startedAt = performance.now();
      const worker = cluster.fork({ [SLOT_VARIABLE]: String(slot) });
      worker.on('error', (error) => logger.warn({ err: error, worker: slot }, 'the channel to a worker failed'));
      worker.on('message', (message: unknown) => {
        if (!isOurs<WorkerMessage>(message)) return;
        if (message.tollgate === 'scrape') void metrics.answer(worker, message.id, workers());
        else if (message.tollgate === 'metrics') metrics.took(worker, message.id, message.snapshot);
        else {
          listened = true;
          listens(message.baseUrl);
        }
      });
      if (stopping) worker.process.kill('SIGTERM');
      const [code, signal] = (await once(worker, 'exit')) as [number | null, string | null];
      metrics.gone(worker);
      if (stopping || !listened) return { code, signal };
      const waitMs = nextWait(performance.now() - startedAt);
      logger.error({ worker: slot, exit_code: code, signal, restart_in_ms: waitMs }, 'a worker died');
      await Promise.race([stop.requested, new Promise((resolve) => setTimeout(resolve, waitMs))]);
      if (stopping) return { code: 0, signal: null };
    }
  };
  const ends: Promise<Exit>[] = [];
  /** Resolves when the worker listens for the first time; with false when it ended before, or all are to stop. */
  const start = (slot: number): Promise<boolean> =>
    new Promise((resolve) => {
      const end = keep(slot, (baseUrl) => {
        if (address !== null) announce(baseUrl);
        else if (slot === 0) first = baseUrl;
        resolve(true);
      });
      ends.push(end);
      void end.then(() => resolve(false));
      void stop.requested.then(() => resolve(false));
    });

  let first = '';
  try {
    // One alone at first: it brings the schema up to date, and what is wrong with the configuration is said once.
    let started = await start(0);
    if (started) started = (await Promise.all(Array.from({ length: count - 1 }, (_, index) => start(index + 1)))).every(Boolean);
    if (started) {
      announce(first);
      logger.info({ address: first, workers: count, models: config.services.length, data: config.dataDir }, 'listening');
      await stop.requested;
      logger.info({ workers: count }, 'stopping: running calls may finish');
    }
  } finally {
    stopping = true;
    killAll('SIGTERM');
    const cut = setTimeout(() => killAll('SIGKILL'), config.limits.drainOnShutdownMs + CLOSE_MS);
    const exits = await Promise.all(ends);
    clearTimeout(cut);
    const failed = exits.find(({ code, signal }) => code !== 0 && signal !== 'SIGTERM');
    if (failed) process.exitCode = failed.code ?? 1;
    removeGatewayFile(config.dataDir);
    log.flush();
    process.off('exit', onExit);
    stop.forget();
  }
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

function check(config: Config, count: number): void {
  if (config.databaseUrl === null) {
    throw new CliError(
      '--workers needs PostgreSQL: the embedded database belongs to one process.\nSet DATABASE_URL=postgres://…, or leave --workers out.',
    );
  }
  const { url, port } = config.cluster;
  const last = url === null ? 0 : Math.max(port, Number(new URL(url).port || 443)) + count - 1;
  if (last > 65_535) throw new CliError(`--workers ${count} takes the ports from [cluster] port and url upwards, and there is no port ${last}.`);
}
