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
  /** Of `config.router.wallet`; null where there is only an API key. */
  readonly wallet: Wallet | null;
  readonly log: Log;
  readonly now: () => number;
  readonly random: () => number;
  /** This program's own environment. Tools that are started get its harmless part. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly version?: string;
  readonly limits?: Partial<ProxyLimits>;
}

export interface ProxyLimits {
  /** Calls that run at once on one connection. */
  readonly streamsMax: number;
  /** A router that says nothing this long is gone. */
  readonly silenceMs: number;
  /** Until the head of an upstream's reply. The gateway has a limit of its own, which is usually the shorter one. */
  readonly headTimeoutMs: number;
  /** How long running calls may go on after `close`. */
  readonly drainMs: number;
  /** Between dials of a router that does not accept the credential. */
  readonly unauthorizedMs: number;
  /** How long a tool's process may take to end. */
  readonly toolStop: StopTimes;
}

const LIMITS: ProxyLimits = {
  streamsMax: 4_096,
  silenceMs: 15_000,
  headTimeoutMs: 300_000,
  drainMs: 30_000,
  unauthorizedMs: 30_000,
  // The end of its input comes before both, so that a server may end by itself.
  toolStop: { termMs: 1_000, killMs: 5_000 },
};

export interface Proxy {
  /** Dials, and dials again whenever the connection is lost. */
  start(): void;
  /** Settles when nothing of it is left, with the exit code. */
  readonly closed: Promise<ExitCode>;
  /**
   * Takes no more calls, finishes those that run (as long as `drainMs` allows), ends the tools, and settles as
   * `closed` does.
   */
  close(): Promise<ExitCode>;
  /** Ends everything at once, started processes too, without waiting for it. */
  kill(): void;
}

/** A provider's proxy: one tunnel to the router, kept up for ever, and the services behind it. */
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
  /** The newest, and those of routers that stop, where calls still run. */
  const connections = new Set<Connection>();
  const url = tunnelUrl(config.router.url);
  const document = JSON.stringify(toRegistrationDocument(config.services));
  /** null before `start`. */
  let upstreams: Upstreams | null = null;

  /** One connection, until it ends or another one is needed. */
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

  /** Calls first, then what they need. */
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
