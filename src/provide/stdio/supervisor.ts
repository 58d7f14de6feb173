import { setTimeout as pause } from 'node:timers/promises';
import { isObject } from '#wire';
import { createBackoff } from '../backoff.ts';
import type { StopTimes } from './child-process.ts';
import type { Era } from './era.ts';
import { startServer, type Run, type Running, type ServerOptions } from './start-server.ts';

export interface SupervisorOptions extends ServerOptions {
  readonly random: () => number;
  readonly now: () => number;
  readonly stopTimes: StopTimes;
}

/** One MCP server's process, restarted whenever it ends. */
export interface Supervisor {
  /** Resolves with the server, also while it is still starting. Resolves with null while it is down. */
  running(): Promise<Running | null>;
  /** Ends the subscriptions. */
  drain(): void;
  /** Ends the process gracefully. */
  stop(): Promise<void>;
  /** Kills the process immediately. */
  kill(): void;
}

/** A process that ran this long had a successful start. */
const STEADY_MS = 10_000;

export function superviseServer(options: SupervisorOptions): Supervisor {
  const { service, log, random, now, stopTimes } = options;
  const backoff = createBackoff(random);
  const stopping = new AbortController();
  let run: Run | null = null;
  let running: Promise<Running | null> = Promise.resolve(null);

  async function runOnce(): Promise<void> {
    const begun = now();
    const started = startServer(options);
    run = started;
    running = started.ready.then(
      (ready) => {
        log.info({ service, ...factsOf(ready.era) }, 'tool is running');
        return ready;
      },
      (error: unknown) => {
        if (!stopping.signal.aborted) log.warn({ service, error }, 'the tool cannot be used');
        started.kill();
        return null;
      },
    );
    const how = await started.ended;
    run = null;
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
    drain: () => void running.then((ready) => ready?.pipe.drain()),
    async stop() {
      stopping.abort();
      await run?.stop(stopTimes);
      await done;
    },
    kill() {
      stopping.abort();
      run?.kill();
    },
  };
}

function factsOf(era: Era): { readonly server: unknown; readonly version: unknown; readonly protocol: unknown } {
  const said = era.kind === 'legacy' ? era.initialized : era.discovered;
  const meta = isObject(said?.['_meta']) ? said['_meta'] : {};
  const named = said?.['serverInfo'] ?? meta['io.modelcontextprotocol/serverInfo'];
  const info = isObject(named) ? named : {};
  return {
    server: info['name'],
    version: info['version'],
    protocol: said?.['protocolVersion'] ?? said?.['supportedVersions'],
  };
}
