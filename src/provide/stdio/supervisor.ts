import { setTimeout as pause } from 'node:timers/promises';
import { createBackoff } from '../backoff.ts';
import type { StopTimes } from './child-process.ts';
import type { JsonObject } from './json-rpc.ts';
import { startSession, type Session, type SessionOptions } from './session.ts';

export interface SupervisorOptions extends SessionOptions {
  readonly random: () => number;
  readonly now: () => number;
  readonly stopTimes: StopTimes;
}

/** A server that is there to be asked. */
export interface Running {
  readonly session: Session;
  /** Result of its `initialize`, for clients that ask for it; null of a server that has none. */
  readonly initialized: JsonObject | null;
}

/** One MCP server's process, started again whenever it ends. */
export interface Supervisor {
  /** The server, when it is there or just starting; null while it is down. */
  running(): Promise<Running | null>;
  /** Ends the process in good order. */
  stop(): Promise<void>;
  /** Ends it at once. */
  kill(): void;
}

/** A process that ran this long did not fail to start. */
const STEADY_MS = 10_000;

export function superviseServer(options: SupervisorOptions): Supervisor {
  const { service, log, random, now, stopTimes } = options;
  const backoff = createBackoff(random);
  const stopping = new AbortController();
  let session: Session | null = null;
  let running: Promise<Running | null> = Promise.resolve(null);

  async function runOnce(): Promise<void> {
    const begun = now();
    const started = startSession(options);
    session = started;
    running = started.initialized.then(
      (initialized) => {
        const info = initialized?.['serverInfo'] as { name?: unknown; version?: unknown } | undefined;
        log.info({ service, server: info?.name, version: info?.version, protocol: initialized?.['protocolVersion'] }, 'tool is running');
        return { session: started, initialized };
      },
      (error: unknown) => {
        if (!stopping.signal.aborted) log.warn({ service, error }, 'the tool cannot be used');
        started.kill();
        return null;
      },
    );
    const how = await started.ended;
    session = null;
    running = Promise.resolve(null);
    if (stopping.signal.aborted) return;
    if (now() - begun >= STEADY_MS) backoff.reset();
    const wait = backoff.next();
    log.warn({ service, how, again_in_ms: wait }, 'the tool ended');
    await pause(wait, undefined, { signal: stopping.signal }).catch(() => {});
  }

  const done = (async () => {
    while (!stopping.signal.aborted) await runOnce();
  })();

  return {
    running: () => running,
    async stop() {
      stopping.abort();
      await session?.stop(stopTimes);
      await done;
    },
    kill() {
      stopping.abort();
      session?.kill();
    },
  };
}
