import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import type { ServiceConfig } from '#config';
import { toRegistrationDocument } from '#network/tunnel';
import { createBackoff } from './backoff.ts';
import { createCallTable } from './call-table.ts';
import { connect, type Connection, type Ending } from './connection.ts';
import { credentialHeaders } from './credential.ts';
import { createForward, type Forward } from './forward.ts';
import type { Log } from './log.ts';
import { refuse } from './own-reply.ts';
import type { ProviderConfig } from './provider-file.ts';
import type { StopTimes } from './stdio/child-process.ts';
import { createStdioTool, type StdioTool } from './stdio/create-stdio-tool.ts';
import { tunnelUrl } from './tunnel-url.ts';
import type { Wallet } from './wallet/wallet.ts';

export interface ProxyOptions {
  readonly config: ProviderConfig;
  /** Of `config.router.wallet`; null where there is only an API key. */
  readonly wallet: Wallet | null;
  readonly log: Log;
  readonly now: () => number;
  readonly random: () => number;
  /** This program's own environment, of which tools that are started get what is harmless. */
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

/**
 * Why a proxy ended, as exit code of its process: closed as asked, registration refused, not allowed here, replaced
 * by a newer connection.
 */
export const EXIT = { closed: 0, refused: 1, forbidden: 2, replaced: 3 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

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

/** A connection that was ready this long was a good one: the next dial is a first one. */
const STEADY_MS = 10_000;
const CONNECT_MS = 10_000;
/** Clocks that differ by more than this make a sign-in invalid. */
const SKEW_MS = 20_000;
/** Dials with an API key that was never let in, before it is a wrong one, and the time between them. */
const KEY_TRIES = 3;
const KEY_AGAIN_MS = 1_000;

/** A provider's proxy: one tunnel to the router, kept up for ever, and the services behind it. */
export function createProxy(options: ProxyOptions): Proxy {
  const { config, wallet, log, now, random, env = {}, version = '0' } = options;
  const limits = { ...LIMITS, ...options.limits };
  const backoff = createBackoff(random);
  const stopping = new AbortController();
  const closed = Promise.withResolvers<ExitCode>();
  /** The newest, and those of routers that stop, where calls still run. */
  const connections = new Set<Connection>();
  const tools: StdioTool[] = [];
  // Silence inside a reply is the gateway's to judge: it cancels the call.
  const dispatcher = new Agent({
    allowH2: false,
    headersTimeout: limits.headTimeoutMs,
    bodyTimeout: 0,
    connect: { timeout: CONNECT_MS },
  });
  const url = tunnelUrl(config.router.url);
  const document = JSON.stringify(toRegistrationDocument(config.services));
  /** The router let this credential in before, so that it is a right one. */
  let accepted = false;
  /** Dials in a row that were refused with 401. */
  let unauthorized = 0;
  let serve: ReturnType<typeof createCallTable> = () => {};
  let started = false;

  function forwardOf({ service, target }: ServiceConfig): Forward {
    if (target.kind === 'command') {
      const tool = createStdioTool({
        service: service.name,
        target,
        env,
        version,
        log,
        random,
        now,
        stopTimes: limits.toolStop,
      });
      tools.push(tool);
      return tool.forward;
    }
    const facts = { service: service.name, primitive: service.primitive };
    return createForward({
      target,
      dispatcher,
      failed: (failure, error) => log.warn({ ...facts, failure, error }, 'the upstream failed'),
    });
  }

  /**
   * One connection, until it is not the one to have any more. Resolves with how long to wait before the next, or
   * with the code to end with.
   */
  async function connectOnce(): Promise<{ readonly wait: number } | { readonly exit: ExitCode }> {
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
      serve: (stream, headers) => (stopping.signal.aborted ? refuse(stream, 'draining') : serve(stream, headers)),
      ready(names) {
        readyAt = now();
        accepted = true;
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
    if (readyAt !== null && now() - readyAt >= STEADY_MS) backoff.reset();
    return stopping.signal.aborted ? { exit: EXIT.closed } : next(ending);
  }

  /** A wrong key stays wrong. A right one may be refused for a while, and so may a wallet, whose clock is put right. */
  function keyIsWrong(): boolean {
    unauthorized += 1;
    return wallet === null && !accepted && unauthorized >= KEY_TRIES;
  }

  function next(ending: Ending): { readonly wait: number } | { readonly exit: ExitCode } {
    const again = (facts: object, text: string, wait = backoff.next()) => {
      log.warn({ router: config.router.url, ...facts, again_in_ms: wait }, text);
      return { wait };
    };
    switch (ending.kind) {
      case 'lost':
        return again({ why: ending.why }, 'no connection to the router');
      case 'draining':
        return again({}, 'the router stops: running calls go on, dialling anew');
      case 'replaced':
        log.error({ router: config.router.url }, 'another proxy with the same credential took over; this one ends');
        return { exit: EXIT.replaced };
      case 'refused':
        for (const { key, wrong, right } of ending.problems) log.error({ key, wrong, right }, 'the router refused');
        log.error({ why: ending.message }, 'the router refused the services; correct the file and start again');
        return { exit: EXIT.refused };
      case 'rejected': {
        const { status, message, retryAfterMs, skewMs } = ending;
        const facts = { status, message };
        if (status === 403) {
          log.error({ router: config.router.url, ...facts }, 'this provider may not connect here');
          return { exit: EXIT.forbidden };
        }
        if (status === 401) {
          if (keyIsWrong()) {
            log.error(
              { router: config.router.url, ...facts },
              'the router does not accept this API key; correct router.api_key and start again',
            );
            return { exit: EXIT.forbidden };
          }
          const clock = skewMs !== null && Math.abs(skewMs) > SKEW_MS ? { hint: clockHint(skewMs) } : {};
          const wait =
            wallet === null && !accepted ? Math.min(KEY_AGAIN_MS, limits.unauthorizedMs) : limits.unauthorizedMs;
          return again({ ...facts, ...clock }, 'the router does not accept the credential', wait);
        }
        unauthorized = 0;
        if (status === 426) return again(facts, 'what is between here and the router passes no WebSockets on');
        if (status === 404 || (status >= 300 && status < 400))
          return again({ ...facts, hint: 'is router.url right?' }, 'no router takes providers there');
        // On top of what it asked for, so that those who were told the same do not come back at once.
        const wait = Math.min(retryAfterMs ?? 0, limits.unauthorizedMs) + backoff.next();
        return again(facts, 'the router takes no connection now', wait);
      }
    }
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
    for (const tool of tools) tool.drain();
    for (const connection of connections) connection.drain(limits.drainMs);
    await Promise.all([...connections].map((connection) => connection.closed));
    await Promise.all([...tools.map((tool) => tool.stop()), dispatcher.destroy()]);
  }

  function kill(): void {
    stopping.abort();
    for (const connection of connections) connection.destroy();
    for (const tool of tools) tool.kill();
    void dispatcher.destroy();
  }

  return {
    closed: closed.promise,
    start() {
      if (started) return;
      started = true;
      serve = createCallTable(config.services, forwardOf);
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
      if (!started) closed.resolve(EXIT.closed);
      await end();
      return closed.promise;
    },
    kill,
  };
}

function clockHint(skewMs: number): string {
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  return `the clock of this machine is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the router's`;
}
