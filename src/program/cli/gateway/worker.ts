import cluster from 'node:cluster';
import type { ReloadReport, App } from '#app';
import type { MetricSnapshot, Metrics } from '#observe';
import { GatewayError } from '#errors';
import { bodiesBytesOf } from '#http';
import type { ClusterConfig, Config } from '#config';
import { runGateway } from './gateway-process.ts';
import type { ListedConfig } from './listed-config.ts';
import { catchReload } from './signals.ts';

/* A worker of `tollgate serve --workers`, and the messages between it and its supervisor (workers.ts). */

/**
 * The environment variable that tells a process its number as a worker: 0, 1, … A worker that died is replaced by one
 * with the same number.
 */
export const SLOT_VARIABLE = 'TOLLGATE_WORKER';
export const COUNT_VARIABLE = 'TOLLGATE_WORKERS';

export type WorkerMessage =
  | { readonly tollgate: 'ready'; readonly baseUrl: string }
  /** This worker was asked for the metrics of all workers. */
  | { readonly tollgate: 'scrape'; readonly id: number }
  | { readonly tollgate: 'metrics'; readonly id: number; readonly snapshot: readonly MetricSnapshot[] }
  /** The admin API of this worker was asked to reload all workers. */
  | { readonly tollgate: 'reload-all'; readonly id: number }
  | { readonly tollgate: 'reloaded'; readonly id: number; readonly outcome: ReloadOutcome };

export type SupervisorMessage =
  | { readonly tollgate: 'collect'; readonly id: number }
  | { readonly tollgate: 'scraped'; readonly id: number; readonly text: string }
  /** Load this text of the configuration file. Null if there is no file, or it cannot be read. */
  | { readonly tollgate: 'reload'; readonly id: number; readonly text: string | null }
  | { readonly tollgate: 'all-reloaded'; readonly id: number; readonly outcome: ReloadOutcome };

/** `problem` is the message of the error. `isConfig`: the operator must correct the configuration. */
export type ReloadOutcome =
  | { readonly report: ReloadReport }
  | { readonly problem: string; readonly isConfig: boolean };

/**
 * Whether a message on the channel is one of tollgate's. Its shape is not checked, because both ends run the same
 * program.
 */
export function isOurs<M extends WorkerMessage | SupervisorMessage>(message: unknown): message is M {
  return typeof message === 'object' && message !== null && 'tollgate' in message;
}

/** The longest wait for the figures of the other workers. */
const SCRAPE_MS = 5_000;

/** Errors that the operator must correct in the file. They are matched by name, so that no room has to be loaded. */
const OF_THE_FILE: ReadonlySet<string> = new Set(['ConfigError', 'PaymentsSetupError']);

/** The number of this worker; null for a process that no supervisor started. */
export function workerSlot(): number | null {
  const slot = process.env[SLOT_VARIABLE];
  return cluster.isWorker && slot !== undefined ? Number(slot) : null;
}

/** Runs one of several gateways that share a port, until its supervisor stops it or ends. */
export async function runWorker(
  config: Config & { readonly adminKey: string },
  slot: number,
  source: ListedConfig<Config>,
): Promise<void> {
  const worker = cluster.worker!;
  const figures = createFigures();
  const ofWorker = <C extends Config>(next: C): C => ({
    ...next,
    limits: limitsOfWorker(next.limits),
    cluster: clusterOfWorker(next.cluster, slot),
  });
  const reloads = createReloads(async (text) => ofWorker(await source.read(text)));
  await runGateway(ofWorker(config), {
    listed: { ...source, current: async () => ofWorker(await source.current()) },
    configFile: null,
    discovery: false,
    // The first worker builds and compresses the pages. The others use the folder that it built.
    pages: slot === 0,
    options: { metricsText: figures.ofAll, reloadAll: reloads.ofAll },
    prepare: async (app) => {
      figures.tell(app.metrics);
      reloads.tell(app);
    },
    ready: (app, baseUrl) => {
      // Until here, Node ends a worker at once when its supervisor ends. From here on running calls may finish,
      // because `runGateway` stops gracefully at the same event.
      worker.exitedAfterDisconnect = true;
      app.logger.info({ worker: slot, address: baseUrl }, 'a worker listens');
      send({ tollgate: 'ready', baseUrl });
    },
    stopping: (app) => app.logger.info({ worker: slot }, 'stopping: running calls may finish'),
    cleanUp: async () => {
      figures.close();
      reloads.close();
      worker.exitedAfterDisconnect = true;
      if (process.connected) process.disconnect?.();
    },
  });
}

/** The workers share the memory, so each has its part of the default for bodies. */
const limitsOfWorker = (limits: Config['limits']): Config['limits'] => ({
  ...limits,
  bodiesBytesMax: limits.bodiesBytesMax ?? bodiesBytesOf(Number(process.env[COUNT_VARIABLE] ?? 1)),
});

/**
 * Each worker has its own listener for other gateways. If the gateway can be reached from other machines, the workers
 * use the ports that follow the configured one. Else they listen on loopback.
 */
export function clusterOfWorker(config: ClusterConfig, slot: number): ClusterConfig {
  if (config.url === null) return { ...config, url: 'https://127.0.0.1:0', host: '127.0.0.1', port: 0 };
  const url = new URL(config.url);
  if (url.port !== '0') url.port = String(Number(url.port || 443) + slot);
  return { ...config, url: url.origin, port: config.port === 0 ? 0 : config.port + slot };
}

/** Requests figures of all workers when this worker is scraped, and sends this worker's figures to the supervisor. */
function createFigures() {
  const waiting = new Map<number, (text: string) => void>();
  let own: Metrics | null = null;
  let last = 0;
  const onMessage = (message: unknown) => {
    if (!isOurs<SupervisorMessage>(message)) return;
    if (message.tollgate === 'scraped') waiting.get(message.id)?.(message.text);
    else if (message.tollgate === 'collect')
      void own?.snapshot().then((snapshot) => send({ tollgate: 'metrics', id: message.id, snapshot }));
  };
  process.on('message', onMessage);
  // unref, because a listener for messages would keep the process alive.
  process.channel?.unref();

  return {
    tell(metrics: Metrics) {
      own = metrics;
    },
    async ofAll(): Promise<string> {
      const id = (last += 1);
      let timer: NodeJS.Timeout | undefined;
      try {
        return await new Promise<string>((resolve, reject) => {
          waiting.set(id, resolve);
          timer = setTimeout(
            () =>
              reject(
                new GatewayError('service_unavailable', 'The figures of the other workers did not come in time', {
                  retryAfterS: 1,
                }),
              ),
            SCRAPE_MS,
          );
          send({ tollgate: 'scrape', id });
        });
      } finally {
        clearTimeout(timer);
        waiting.delete(id);
      }
    },
    close() {
      process.off('message', onMessage);
    },
  };
}

/** Reloads this worker when the supervisor asks, and requests a reload of all workers when this worker is asked. */
function createReloads(load: (text?: string) => Promise<Config>) {
  const waiting = new Map<number, (outcome: ReloadOutcome) => void>();
  const { promise: own, resolve: tell } = Promise.withResolvers<App>();
  let last = 0;
  const reload = async (text: string | null): Promise<ReloadOutcome> => {
    try {
      return { report: await (await own).reload(() => load(text ?? undefined)) };
    } catch (error) {
      return {
        problem: error instanceof Error ? error.message : String(error),
        isConfig: OF_THE_FILE.has(error instanceof Error ? error.name : ''),
      };
    }
  };
  const onMessage = (message: unknown) => {
    if (!isOurs<SupervisorMessage>(message)) return;
    if (message.tollgate === 'all-reloaded') waiting.get(message.id)?.(message.outcome);
    else if (message.tollgate === 'reload') {
      const { id } = message;
      void reload(message.text).then((outcome) => send({ tollgate: 'reloaded', id, outcome }));
    }
  };
  process.on('message', onMessage);
  // SIGHUP is ignored here, because the supervisor reloads all workers.
  const ignored = catchReload(async () => {});

  return {
    tell,
    async ofAll(): Promise<ReloadReport> {
      const id = (last += 1);
      const outcome = await new Promise<ReloadOutcome>((resolve) => {
        waiting.set(id, resolve);
        send({ tollgate: 'reload-all', id });
      });
      waiting.delete(id);
      if ('report' in outcome) return outcome.report;
      throw new GatewayError(outcome.isConfig ? 'invalid_request' : 'internal', outcome.problem);
    },
    close() {
      process.off('message', onMessage);
      ignored.forget();
    },
  };
}

/** Has no effect if the supervisor has ended, because this process stops then. */
function send(message: WorkerMessage): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}
