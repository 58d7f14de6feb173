import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { createLines } from '#wire';
import { PREFACE_BYTES } from '#wire/frame-meter';
import { findPackage, PACKAGE_FAILED, type SdkTarget } from '#config';
import type { Egress } from './egress.ts';
import { meteredPipe } from './metered-pipe.ts';
import type { PackageLog } from './package-log.ts';
import { readPaced } from './read-paced.ts';
import { ENVIRONMENT } from './wall/candidates.ts';
import { ownFiles, type Wall } from './wall/find-wall.ts';
import { CALLS_FD, CONTROL_FD, FETCHES_FD, type ToWorker } from './worker/messages.ts';

interface WorkerOptions {
  readonly target: SdkTarget;
  readonly egress: Egress;
  readonly wall: Wall;
  readonly log: PackageLog;
  /** Default WORKER_TIMES. */
  readonly times: WorkerTimes | undefined;
}

/** Times in milliseconds. */
export interface WorkerTimes {
  /** A package that is not loaded by then cannot be used. */
  readonly startMs: number;
  /** A process is asked this often whether it still runs. */
  readonly pingMs: number;
  /** A process that does not answer for this long is ended: its event loop stands still. */
  readonly stallMs: number;
}

const WORKER_TIMES: WorkerTimes = { startMs: 20_000, pingMs: 5_000, stallMs: 20_000 };

export interface Worker {
  /** The pipe for calls, once the package is loaded. Rejects with Error if it cannot be. */
  readonly calls: Promise<Duplex>;
  /** Resolves with how the process ended. */
  readonly ended: Promise<string>;
  kill(): void;
}

const PROGRAM = fileURLToPath(new URL('./worker/main.ts', import.meta.url));
const LINE_BYTES_MAX = 2_048;
/** Bytes that are read of what a process logs between two pings. A process that writes more waits. */
const LOG_BYTES_MAX = 1024 * 1024;
/** Bytes of answers between two pings. An answer has a few, so a process with this many tells what nobody asked. */
const ANSWERS_BYTES_MAX = 8 * 1024;
/** Memory of a process for JavaScript in MiB. One that needs more ends, and the gateway goes on. */
const HEAP_MIB = 512;
/**
 * All memory of a process in MiB. The kernel bounds it more exactly where it can (find-wall.ts). Elsewhere it is looked
 * at with each ping.
 */
const MEMORY_MIB = 768;

/** A process whose pipe is closed is ended after this time. */
const LEFT_MS = 1_000;

/**
 * Node's permission model does not cover all: SQLite opens files, and so do the storages of the web; SIGUSR1 opens the
 * debugger; and flags of V8 make it write files. A Node that does not know a flag would not start with it.
 */
export const NODE_FLAGS: readonly string[] = [
  '--permission',
  ...['--no-experimental-sqlite', '--no-experimental-webstorage', '--no-experimental-ffi', '--disable-sigusr1'].filter(
    (flag) => process.allowedNodeEnvironmentFlags.has(flag),
  ),
  '--freeze-flags-after-init',
  '--disable-warning=ExperimentalWarning',
  `--max-old-space-size=${HEAP_MIB}`,
];

/**
 * Starts the process of a package. Node's permission model allows it to read the folders of packages and nothing else:
 * no connection, no other file, no program, no thread, no native addon. What that model does not cover is shut by
 * NODE_FLAGS and in worker/shut.ts; and the wall holds if Node does not. Throws PackageUnusable.
 */
export function startWorker({ target, egress, wall, log, times = WORKER_TIMES }: WorkerOptions): Worker {
  const { specifier, factory, from, readable: folders } = findPackage(target);
  const ready = Promise.withResolvers<Duplex>();
  const ended = Promise.withResolvers<string>();
  ready.promise.catch(() => {});
  const readable = [...folders, ...ownFiles()];
  const allowed = readable.map((path) => `--allow-fs-read=${path}`);
  const { command, args, ...how } = wall.launch({ args: [...NODE_FLAGS, ...allowed, PROGRAM], readable });
  // A process group of its own: Ctrl-C in a terminal is for the gateway, which ends its calls first; and helpers that
  // made the wall end together with the package. Libraries ask for a home.
  const child = spawn(command, args, {
    ...how,
    env: { ...ENVIRONMENT, HOME: '/' },
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
  });
  const [calls, fetches, control] = [CALLS_FD, FETCHES_FD, CONTROL_FD].map((fd) => child.stdio[fd] as Socket) as [
    Socket,
    Socket,
    Socket,
  ];
  // It serves the calls, and asks for its own requests.
  const callStream = meteredPipe(calls, 0, (why) => end(why));
  const fetchStream = meteredPipe(fetches, PREFACE_BYTES, (why) => end(why));
  const tell = (message: ToWorker) => void (control.writable && control.write(`${JSON.stringify(message)}\n`));
  let killed = false;
  const kill = () => {
    killed = true;
    // A pipe that nobody reads would not tell that it ended.
    for (const stream of [callStream, fetchStream]) stream.destroy();
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // All of the group has ended.
    }
  };
  const fail = (why: string) => {
    ready.reject(startFailure(`${specifier}: ${why}`));
    kill();
  };
  const end = (why: string) => {
    if (killed) return;
    log.own(`${why}, so it is ended`);
    kill();
  };

  const output = createLines({
    bytesMax: LINE_BYTES_MAX,
    line: log.line,
    tooLong: (beginning) => log.line(`${beginning}…`),
  });
  /** Infinity until the first answer: `startMs` bounds that time. */
  let answeredAt = Infinity;
  // Not Node's own messages between processes: those are read without a bound, and some of them mean something to Node.
  const answers = createLines({
    bytesMax: LINE_BYTES_MAX,
    line(text) {
      answeredAt = performance.now();
      if (text === 'ready') {
        clearTimeout(late);
        ready.resolve(callStream);
      } else if (text.startsWith('failed ')) fail(text.slice('failed '.length));
      else if (Number(text) > MEMORY_MIB) end(`it takes ${Number(text)} MiB of memory, more than ${MEMORY_MIB}`);
    },
    tooLong: () => end('it sent a message that is too long'),
  });
  const readLog = readPaced(child.stderr!, LOG_BYTES_MAX, (piece) => output.push(piece));
  const readAnswers = readPaced(control, ANSWERS_BYTES_MAX, (piece, isLast) => {
    if (killed) return;
    answers.push(piece);
    if (isLast) end('it sent messages that nobody asked for');
  });

  const ping = setInterval(() => {
    readLog();
    readAnswers();
    void tooLarge(child.pid).then((mib) => {
      if (mib !== null) end(`it takes ${mib} MiB of memory, more than ${MEMORY_MIB}`);
    });
    if (!(performance.now() - answeredAt > times.stallMs)) return tell('ping');
    end(`it did not answer for ${times.stallMs} ms`);
  }, times.pingMs).unref();
  const late = setTimeout(() => fail(`it was not loaded within ${times.startMs} ms`), times.startMs).unref();
  const over = (how: string) => {
    clearInterval(ping);
    clearTimeout(late);
    fail(`its process ${how}`);
    ended.resolve(how);
  };

  child.on('error', (error) => {
    if (child.pid === undefined) over(`could not be started: ${error.message}`);
  });
  child.on('exit', (code, signal) => over(signal === null ? `exited with code ${code}` : `was ended by ${signal}`));
  for (const pipe of [calls, fetches, control]) {
    pipe.on('error', () => {});
    // A process that cannot be called is of no use, but it could go on. One that ends says how first.
    pipe.on('close', () => setTimeout(kill, LEFT_MS).unref());
  }
  egress.serve(fetchStream, {
    origins: providerOrigins(target),
    refused: (host, why) => log.refused(`it asked for ${host}, which it does not get: it ${why}`),
    flooded: () => end('it sent too many requests'),
  });
  tell({ start: { specifier, from, factory, settings: providerSettings(target) } });
  return { calls: ready.promise, ended: ended.promise, kill };
}

/**
 * The memory of a process and of those that it started, in MiB, if it is too much; null if it is not, or if the system
 * does not tell. Then the process itself tells it with its answer to a ping, which a package can falsify.
 */
async function tooLarge(pid: number | undefined): Promise<number | null> {
  if (process.platform !== 'linux' || pid === undefined) return null;
  try {
    const [status, children] = await Promise.all([
      readFile(`/proc/${pid}/status`, 'utf8'),
      readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => ''),
    ]);
    const mib = Math.round(Number(/^VmRSS:\s*(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024);
    if (mib > MEMORY_MIB) return mib;
    const below = await Promise.all(children.split(' ').filter(Boolean).map(Number).map(tooLarge));
    return below.find((one) => one !== null) ?? null;
  } catch {
    // It has ended.
    return null;
  }
}

const startFailure = (message: string): Error => Object.assign(new Error(message), { code: PACKAGE_FAILED });

/** The settings as a package takes them: `headers.x-org` of the block is `{ headers: { 'x-org': … } }`. */
function providerSettings({
  settings,
  secrets,
}: Pick<SdkTarget, 'settings' | 'secrets'>): Readonly<Record<string, unknown>> {
  const result: Record<string, unknown> = {};
  for (const [path, value] of Object.entries({ ...settings, ...secrets })) {
    const names = path.split('.');
    const last = names.pop()!;
    let place = result;
    for (const name of names) place = (place[name] ??= {}) as Record<string, unknown>;
    place[last] = value;
  }
  return result;
}

/** Origins that the operator wrote into the settings, such as that of `baseURL`. */
function providerOrigins({ settings }: SdkTarget): ReadonlySet<string> {
  const urls = Object.values(settings).map((value) => (typeof value === 'string' ? URL.parse(value) : null));
  return new Set(urls.flatMap((url) => (url && /^https?:$/.test(url.protocol) ? [url.origin] : [])));
}
