import type { Duplex } from 'node:stream';
import { callbackify } from 'node:util';
import type { buildConnector, Dispatcher } from 'undici';
import { loadPool } from '#wire/undici';
import { type Config, findPackage, PACKAGE_FAILED, type SdkTarget, type ServiceTarget } from '#config';
import type { Egress } from './egress.ts';
import type { PackageLog } from './package-log.ts';
import type { Candidate } from './wall/candidates.ts';
import type { Wall } from './wall/find-wall.ts';
import type { Worker, WorkerTimes } from './start-worker.ts';

interface SdkWorkersOptions {
  readonly connectionsMax: number;
  readonly headTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** `required`: no package starts without a wall that is not Node's own. */
  readonly wall: Config['packages']['wall'];
  /** Files and folders that the wall must keep from packages, such as the data directory. */
  readonly hidden: readonly string[];
  /** For tests: packages may also reach private addresses. Default false. */
  readonly allowPrivate?: boolean;
  /** Called with the name of a package, and with what it wrote, or what became of its process. */
  readonly log: (sdk: string, text: string) => void;
  /** Called once, when the wall of this machine is known. */
  readonly tell: (news: WallNews) => void;
  readonly times?: WorkerTimes;
  /** For tests: the walls that are tried. Default: those of this machine. */
  readonly candidates?: readonly Candidate[];
}

export interface SdkWorkers {
  /**
   * Finds the wall of this machine, if one of the targets is a package. Rejects with ConfigError if a wall is required
   * and there is no wall.
   */
  prepare(targets: readonly ServiceTarget[]): Promise<void>;
  /**
   * The dispatcher that answers OpenAI's API for chat, embeddings and images with the package of a block. Blocks with
   * the same settings share one process. It starts with the first call, and with the next call after it has ended.
   */
  open(target: SdkTarget): Dispatcher;
  /** Ends the processes of all other packages, after their running calls. */
  keepOnly(targets: readonly ServiceTarget[]): void;
  close(): Promise<void>;
}

/** `text` completes with what the kernel keeps from packages, and with why it keeps nothing: null if it does. */
interface WallNews extends Pick<Wall, 'keeps' | 'why'> {
  readonly text: string;
}

/** After each start that failed, no other is tried for so long: a start takes a third of a second of a processor. */
const PAUSES_MS = [0, 1_000, 5_000, 30_000];
/** A process that ends later did not fail at its start. */
const LIVED_MS = 20_000;

/** All that a process is started with. A change of anything else, such as a timeout or a cost, needs no new one. */
const processKey = ({ sdk, settings, secrets, directory }: SdkTarget): string =>
  JSON.stringify([sdk, settings, secrets, directory]);

/** Runs packages of the AI SDK, each in a process of its own. */
export function createSdkWorkers(options: SdkWorkersOptions): SdkWorkers {
  const { log, times, hidden, candidates, allowPrivate = false } = options;
  let egress: Egress | null = null;
  let wall: Promise<Wall> | null = null;
  const wallFor = async (targets: readonly SdkTarget[]): Promise<Wall> => {
    const { findWall, missingWall } = await import('./wall/find-wall.ts');
    const find = async () => {
      const readable = targets.flatMap((target) => findPackage(target).readable);
      const newWall = await findWall({
        readable: [...new Set(readable)],
        hidden,
        ...(candidates ? { candidates } : {}),
      });
      options.tell({ text: `packages of the AI SDK run ${newWall.name}`, keeps: newWall.keeps, why: newWall.why });
      return newWall;
    };
    const current = await (wall ??= find());
    if (current.why !== null && options.wall === 'required') throw missingWall(current.why);
    return current;
  };
  // Loaded with the first call, because most gateways have no package.
  const load = async (target: SdkTarget) => {
    const [{ createEgress }, { createPackageLog }, starting, around] = await Promise.all([
      import('./egress.ts'),
      import('./package-log.ts'),
      import('./start-worker.ts'),
      wallFor([target]),
    ]);
    egress ??= createEgress({ allowPrivate });
    return { ...starting, createPackageLog, egress, around };
  };
  const running = new Map<string, Shared>();
  const keys = new WeakMap<SdkTarget, string>();

  return {
    async prepare(targets) {
      const packages = targets.filter((target) => target.kind === 'sdk');
      if (packages.length > 0) await wallFor(packages);
    },
    open(target) {
      let key = keys.get(target);
      if (key === undefined) keys.set(target, (key = processKey(target)));
      let shared = running.get(key);
      if (shared === undefined) running.set(key, (shared = createShared(target)));
      return shared.dispatcher;
    },
    keepOnly(targets) {
      const targetKeys = new Set(targets.flatMap((target) => (target.kind === 'sdk' ? [processKey(target)] : [])));
      for (const [key, shared] of running) {
        if (targetKeys.has(key)) continue;
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
    let packageLog: PackageLog | null = null;

    const connect = async (): Promise<Duplex> => {
      // Its pipe broke, and the process may go on: there is one for each package.
      worker?.kill();
      const { startWorker, createPackageLog, egress: way, around } = await load(target);
      const ownLog = (packageLog ??= createPackageLog((text) => log(target.sdk, text)));
      if (stopped || notBefore > performance.now())
        throw Object.assign(new Error('it failed a moment ago'), { code: PACKAGE_FAILED });
      worker = startWorker({ target, egress: way, wall: around, log: ownLog, times });
      const begun = performance.now();
      const mine = worker;
      void mine.ended.then((how) => {
        if (worker === mine) worker = null;
        if (stopped) return;
        failures = performance.now() - begun > LIVED_MS ? 1 : failures + 1;
        notBefore = performance.now() + PAUSES_MS[Math.min(failures - 1, PAUSES_MS.length - 1)]!;
        ownLog.own(`its process ${how}`);
      });
      try {
        return await mine.calls;
      } catch (error) {
        ownLog.own(`it cannot be used: ${(error as Error).message}`);
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
        if (gently) await dispatcher.close();
        const last = worker;
        last?.kill();
        await last?.ended;
        // Last, because undici trips over running calls if it closes a connection itself that is no socket.
        await dispatcher.destroy();
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
