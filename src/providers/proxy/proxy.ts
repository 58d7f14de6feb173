import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceConfig } from '#config';
import { connect, type RouterConnection, credentialHeaders } from './connection.ts';
import type { Log } from './log.ts';
import { refuse } from './call-stream.ts';
import type { ProviderConfig } from './provider-file.ts';
import { createOffering, type Offering, type OfferingOutcome } from './offering.ts';
import { createRedial, EXIT, type ExitCode, type Next } from './redial.ts';
import { startUpstreams, type Upstreams } from './upstreams.ts';
import type { StopTimes } from './stdio/child-process.ts';
import type { Wallet } from './wallet/wallet.ts';

export interface ProxyOptions {
  readonly config: ProviderConfig;
  /** The wallet of `config.router.wallet`. null if the provider has only an API key. */
  readonly wallet: Wallet | null;
  readonly log: Log;
  readonly now: () => number;
  readonly random: () => number;
  /** This program's own environment. Tools get only the variables that contain no secrets. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly version?: string;
  readonly limits?: Partial<ProxyLimits>;
}

export interface ProxyLimits {
  readonly streamsMax: number;
  /** The connection counts as lost after this time without a byte from the router. */
  readonly silenceMs: number;
  readonly headTimeoutMs: number;
  /** Timeout for running calls after `close`. */
  readonly drainMs: number;
  /** Time between dials while the router refuses the credential with 401. */
  readonly unauthorizedMs: number;
  readonly toolStop: StopTimes;
  /** How long a service that was taken out of the file still takes calls that were admitted before. */
  readonly lateMs: number;
  /** The longest wait of `reload` for the router. */
  readonly reloadMs: number;
}

const LIMITS: ProxyLimits = {
  streamsMax: 4_096,
  silenceMs: 15_000,
  headTimeoutMs: 300_000,
  drainMs: 30_000,
  unauthorizedMs: 30_000,
  // Before both, the process's stdin is closed, so that the server can exit without a signal.
  toolStop: { termMs: 1_000, killMs: 5_000 },
  lateMs: 30_000,
  reloadMs: 20_000,
};

export interface Proxy {
  /** Dials the router, and dials again whenever the connection is lost. */
  start(): void;
  /**
   * Offers these services in place of those so far. They are registered over the connection that is there, and running
   * calls go on. Reloads run one after the other.
   */
  reload(services: readonly ServiceConfig[]): Promise<OfferingOutcome>;
  services(): readonly ServiceConfig[];
  /** Settles with the exit code when all connections and processes are closed. */
  readonly closed: Promise<ExitCode>;
  /** Takes no more calls, lets running calls finish within `drainMs`, and ends the tools. Settles like `closed`. */
  close(): Promise<ExitCode>;
  /** Ends everything immediately, including started processes. Does not wait for their ends. */
  kill(): void;
}

/** Creates a provider's proxy: it keeps one tunnel to the router open and serves the provider's services through it. */
export function createProxy(options: ProxyOptions): Proxy {
  const { config, wallet, log, now, random, env = {}, version = '0' } = options;
  const limits = { ...LIMITS, ...options.limits };
  const redial = createRedial({
    router: config.router.url,
    byKey: wallet === null,
    unauthorizedMs: limits.unauthorizedMs,
    random,
    log,
  });
  const stopping = new AbortController();
  const closed = Promise.withResolvers<ExitCode>();
  /** The current connection, and older connections to draining routers on which calls still run. */
  const connections = new Set<RouterConnection>();
  /** null until `start`. */
  let upstreams: Upstreams | null = null;
  const offering: Offering = createOffering({
    services: config.services,
    prepare: (services) => upstreams?.prepare(services) ?? null,
    log,
    waitMs: limits.reloadMs,
  });

  /** Keeps one connection until it ends or a new one is needed. */
  async function connectOnce(): Promise<Next> {
    let readyAt: number | null = null;
    log.debug({ router: config.router.url }, 'dialling the router');
    const connection = connect({
      router: config.router,
      headers: await credentialHeaders(config.router, wallet, now()),
      document: offering.document,
      wallet,
      streamsMax: limits.streamsMax,
      silenceMs: limits.silenceMs,
      serve(stream, headers) {
        if (stopping.signal.aborted) refuse(stream, 'draining');
        else upstreams?.serve(stream, headers);
      },
      ready(names) {
        readyAt = now();
        redial.accepted();
        tellReady(log, config.router.url, offering.services(), names);
        offering.connected(connection);
      },
      log,
      now,
    });
    connections.add(connection);
    void connection.closed.then(() => connections.delete(connection));
    if (stopping.signal.aborted) connection.drain(0);
    const ending = await connection.ending;
    offering.disconnected(connection);
    if (stopping.signal.aborted) return { exit: EXIT.closed };
    return redial.after(ending, readyAt === null ? null : now() - readyAt);
  }

  async function run(): Promise<ExitCode> {
    while (!stopping.signal.aborted) {
      const after = await connectOnce();
      if ('exit' in after) return after.exit;
      await pause(after.wait, undefined, { signal: stopping.signal }).catch(() => {});
    }
    return EXIT.closed;
  }

  /** Ends the calls first, then the upstreams that serve them. */
  async function end(): Promise<void> {
    stopping.abort();
    upstreams?.drain();
    for (const connection of connections) connection.drain(limits.drainMs);
    await Promise.all([...connections].map((connection) => connection.closed));
    await upstreams?.stop();
  }

  function kill(): void {
    stopping.abort();
    for (const connection of connections) connection.destroy();
    upstreams?.kill();
  }

  return {
    closed: closed.promise,
    start() {
      if (upstreams !== null) return;
      const { headTimeoutMs, toolStop, lateMs } = limits;
      upstreams = startUpstreams({
        services: offering.services(),
        packages: config.packages,
        hidden: [config.router.wallet?.keypairFile ?? []].flat(),
        env,
        version,
        log,
        random,
        now,
        headTimeoutMs,
        toolStop,
        lateMs,
      });
      const { check } = upstreams;
      check(offering.services())
        .then(run)
        .then(
          async (code) => {
            await end();
            closed.resolve(code);
          },
          (error: unknown) => {
            kill();
            closed.reject(error);
          },
        );
    },
    async close() {
      log.info({}, 'stopping: running calls may finish');
      if (upstreams === null) closed.resolve(EXIT.closed);
      await end();
      return closed.promise;
    },
    async reload(services) {
      await upstreams?.check(services);
      return offering.replace(services);
    },
    services: offering.services,
    kill,
  };
}

function tellReady(log: Log, router: string, services: readonly ServiceConfig[], registered: readonly string[]): void {
  for (const { service } of services)
    if (registered.includes(service.name))
      log.info({ service: service.name, primitive: service.primitive }, 'registered');
  log.info({ router, services: services.length }, 'ready: calls can come');
}
