import type { Socket } from 'node:net';
import { callbackify } from 'node:util';
import type { buildConnector, Dispatcher } from 'undici';
import { loadPool } from '#wire/undici';
import { PACKAGE_FAILED, type SdkTarget, type Target } from '#config';
import type { Egress } from './egress.ts';
import type { Worker, WorkerTimes } from './start-worker.ts';

interface SdkWorkersOptions {
  /** Calls of one package at the same time. */
  readonly connectionsMax: number;
  readonly headTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** For tests: packages may also reach private addresses. Default false. */
  readonly allowPrivate?: boolean;
  /** Called with the name of a package, and with what it wrote, or what became of its process. */
  readonly log: (sdk: string, text: string) => void;
  readonly times?: WorkerTimes;
}

interface SdkWorkers {
  /**
   * The dispatcher that answers OpenAI's API for chat, embeddings and images with the package of a block. Blocks with
   * the same settings share one process. It starts with the first call, and with the next call after it has ended.
   */
  open(target: SdkTarget): Dispatcher;
  /** Ends the processes of all other packages, after their running calls. */
  keepOnly(targets: readonly Target[]): void;
  close(): Promise<void>;
}

/** After each start that failed, no other is tried for so long: a start takes a third of a second of a processor. */
const PAUSES_MS = [0, 1_000, 5_000, 30_000];
/** A process that ends later did not fail at its start. */
const LIVED_MS = 20_000;

/** Runs packages of the AI SDK, each in a process of its own. */
export function createSdkWorkers(options: SdkWorkersOptions): SdkWorkers {
  const { log, times, allowPrivate = false } = options;
  let egress: Egress | null = null;
  // Loaded with the first call, because most gateways have no package.
  const load = async () => {
    const [{ createEgress }, starting] = await Promise.all([import('./egress.ts'), import('./start-worker.ts')]);
    const refused = (host: string, why: string) =>
      log('', `a package asked for ${host}, which it does not get: it ${why}`);
    egress ??= createEgress({ allowPrivate, refused });
    return { ...starting, egress };
  };
  const running = new Map<string, Shared>();
  const keys = new WeakMap<SdkTarget, string>();

  return {
    open(target) {
      let key = keys.get(target);
      if (key === undefined) keys.set(target, (key = JSON.stringify(target)));
      let shared = running.get(key);
      if (shared === undefined) running.set(key, (shared = createShared(target)));
      return shared.dispatcher;
    },
    keepOnly(targets) {
      const kept = new Set(targets.map((target) => JSON.stringify(target)));
      for (const [key, shared] of running) {
        if (kept.has(key)) continue;
        running.delete(key);
        void shared.stop(true);
      }
    },
    async close() {
      const all = [...running.values()];
      running.clear();
      await Promise.all(all.map((shared) => shared.stop(false)));
      await egress?.close();
    },
  };

  function createShared(target: SdkTarget): Shared {
    let worker: Worker | null = null;
    let failures = 0;
    let notBefore = 0;
    let stopped = false;
    const say = (text: string) => log(target.sdk, text);

    const connect = async (): Promise<Socket> => {
      const { startWorker, egress: way } = await load();
      if (stopped || notBefore > performance.now())
        throw Object.assign(new Error('it failed a moment ago'), { code: PACKAGE_FAILED });
      worker = startWorker({ target, egress: way, log: say, times });
      const begun = performance.now();
      const mine = worker;
      void mine.ended.then((how) => {
        if (worker === mine) worker = null;
        if (stopped) return;
        failures = performance.now() - begun > LIVED_MS ? 1 : failures + 1;
        notBefore = performance.now() + PAUSES_MS[Math.min(failures - 1, PAUSES_MS.length - 1)]!;
        say(`its process ${how}`);
      });
      try {
        return await mine.calls;
      } catch (error) {
        say(`it cannot be used: ${(error as Error).message}`);
        throw error;
      }
    };

    const Pool = loadPool();
    const dispatcher = new Pool(ORIGIN, {
      connections: 1,
      headersTimeout: options.headTimeoutMs,
      bodyTimeout: options.idleTimeoutMs,
      // The pipe stays open as long as the process.
      keepAliveTimeout: NEVER_MS,
      h2Options: {
        useH2c: true,
        maxConcurrentStreams: options.connectionsMax,
        pingInterval: 0,
      },
      // By this member, undici knows that the other side speaks HTTP/2.
      connect: callbackify(async (_to: buildConnector.Options) =>
        Object.assign(await connect(), { alpnProtocol: 'h2' }),
      ) as unknown as buildConnector.connector,
    });
    return {
      dispatcher,
      async stop(gently) {
        stopped = true;
        await (gently ? dispatcher.close() : dispatcher.destroy());
        const last = worker;
        last?.kill();
        await last?.ended;
      },
    };
  }
}

interface Shared {
  readonly dispatcher: Dispatcher;
  /** `gently`: after the running calls. */
  stop(gently: boolean): Promise<void>;
}

/** No address is behind it: its connection is the pipe to the process. */
const ORIGIN = 'http://ai-sdk';
const NEVER_MS = 2 ** 31 - 1;
