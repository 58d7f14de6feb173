import { setTimeout as pause } from 'node:timers/promises';
import { toRegistrationDocument } from '#network/tunnel';
import { connect, type Connection } from './connection.ts';
import { credentialHeaders } from './credential.ts';
import type { Log } from './log.ts';
import { refuse } from './own-reply.ts';
import type { ProviderConfig } from './provider-file.ts';
import { createRedial, EXIT, type ExitCode, type Next } from './redial.ts';
import { startUpstreams, type Upstreams } from './upstreams.ts';
import type { StopTimes } from './stdio/child-process.ts';
import { tunnelUrl } from './tunnel-url.ts';
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
  /** The most calls that may run at once on one connection. */
  readonly streamsMax: number;
  /** The connection counts as lost after this time without a byte from the router. */
  readonly silenceMs: number;
  /** Timeout for the head of an upstream's reply. The gateway has its own timeout, which is usually shorter. */
  readonly headTimeoutMs: number;
  /** Timeout for running calls after `close`. */
  readonly drainMs: number;
  /** Time between dials while the router refuses the credential with 401. */
  readonly unauthorizedMs: number;
  /** Timeouts for ending a tool's process. */
  readonly toolStop: StopTimes;
}

const LIMITS: ProxyLimits = {
  streamsMax: 4_096,
  silenceMs: 15_000,
  headTimeoutMs: 300_000,
  drainMs: 30_000,
  unauthorizedMs: 30_000,
  // Before both, the process's stdin is closed, so that the server can exit without a signal.
  toolStop: { termMs: 1_000, killMs: 5_000 },
};

export interface Proxy {
  /** Dials the router, and dials again whenever the connection is lost. */
  start(): void;
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
  const connections = new Set<Connection>();
  const url = tunnelUrl(config.router.url);
  const document = JSON.stringify(toRegistrationDocument(config.services));
  /** null until `start`. */
  let upstreams: Upstreams | null = null;

  /** Keeps one connection until it ends or a new one is needed. */
  async function connectOnce(): Promise<Next> {
    let readyAt: number | null = null;
    log.debug({ router: config.router.url }, 'dialling the router');
    const connection = connect({
      url,
      headers: await credentialHeaders(config.router, wallet, now()),
      document,
      wallet,
      router: config.router.domain,
      streamsMax: limits.streamsMax,
      silenceMs: limits.silenceMs,
      serve(stream, headers) {
        if (stopping.signal.aborted) refuse(stream, 'draining');
        else upstreams?.serve(stream, headers);
      },
      ready(names) {
        readyAt = now();
        redial.accepted();
        for (const { service } of config.services)
          if (names.includes(service.name))
            log.info({ service: service.name, primitive: service.primitive }, 'registered');
        log.info({ router: config.router.url, services: config.services.length }, 'ready: calls can come');
      },
      log,
      now,
    });
    connections.add(connection);
    void connection.closed.then(() => connections.delete(connection));
    if (stopping.signal.aborted) connection.drain(0);
    const ending = await connection.ending;
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
      const { headTimeoutMs, toolStop } = limits;
      upstreams = startUpstreams({
        services: config.services,
        env,
        version,
        log,
        random,
        now,
        headTimeoutMs,
        toolStop,
      });
      run().then(
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
    kill,
  };
}
