import { setTimeout as pause } from 'node:timers/promises';
import { isObject } from '#wire';
import { createBackoff } from '../redial.ts';
import type { StopTimes } from './child-process.ts';
import { type Era, askEra } from './era.ts';
import type { ProcessOptions } from './message-process.ts';
import { openPipe, type Pipe } from './pipe.ts';

interface ServerOptions extends ProcessOptions {
  readonly version: string;
}

export interface SupervisorOptions extends ServerOptions {
  readonly random: () => number;
  readonly now: () => number;
  readonly stopTimes: StopTimes;
}

interface RunningServer {
  readonly pipe: Pipe;
  readonly era: Era;
}

/** One MCP server's process, restarted whenever it ends. */
export interface Supervisor {
  /** Resolves with the server, also while it is still starting. Resolves with null while it is down. */
  running(): Promise<RunningServer | null>;
  drain(): void;
  stop(): Promise<void>;
  kill(): void;
}

/** A process that ran this long had a successful start. */
const STEADY_MS = 10_000;

export function superviseServer(options: SupervisorOptions): Supervisor {
  const { service, log, random, now, stopTimes } = options;
  const backoff = createBackoff(random);
  const stopping = new AbortController();
  let run: ReturnType<typeof startServer> | null = null;
  let running: Promise<RunningServer | null> = Promise.resolve(null);

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
  const facts = era.kind === 'legacy' ? era.initialized : era.discovered;
  const meta = isObject(facts?.['_meta']) ? facts['_meta'] : {};
  const server = facts?.['serverInfo'] ?? meta['io.modelcontextprotocol/serverInfo'];
  const info = isObject(server) ? server : {};
  return {
    server: info['name'],
    version: info['version'],
    protocol: facts?.['protocolVersion'] ?? facts?.['supportedVersions'],
  };
}

/**
 * Starts a server and asks for its era. Some legacy servers exit if the first message isn't `initialize`. Such a server
 * is started a second time. `ready` settles when the era is known, and rejects if the server can't be used. `ended`
 * settles with a text that says how the process ended.
 */
export function startServer(options: ServerOptions) {
  const { version } = options;
  let pipe = openPipe(options);
  let stopping = false;

  async function begin(): Promise<RunningServer> {
    let era = await askEra(pipe, { version, discover: true });
    if (era === null && !stopping) {
      await pipe.ended;
      if (!stopping) {
        pipe = openPipe(options);
        era = await askEra(pipe, { version, discover: false });
      }
    }
    if (era === null) throw new Error('ended before it was initialized');
    return { pipe, era };
  }

  const ready = begin();
  const how = () => pipe.ended;
  return {
    ready,
    ended: ready.then(how, how),
    async stop(times: StopTimes): Promise<string> {
      stopping = true;
      return pipe.stop(times);
    },
    kill() {
      stopping = true;
      pipe.kill();
    },
  };
}
