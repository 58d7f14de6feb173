import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createLines } from '#wire';
import { findPackage, PACKAGE_FAILED, type SdkTarget } from '#config';
import type { Egress } from './egress.ts';
import type { FromWorker, ToWorker } from './worker/messages.ts';

interface WorkerOptions {
  readonly target: SdkTarget;
  readonly egress: Egress;
  /** Lines that the package writes, and how its process ended. */
  readonly log: (text: string) => void;
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
  readonly calls: Promise<Socket>;
  /** Resolves with how the process ended. */
  readonly ended: Promise<string>;
  kill(): void;
}

const PROGRAM = fileURLToPath(new URL('./worker/main.ts', import.meta.url));
const CODE = fileURLToPath(new URL('../', import.meta.url));
const LINE_BYTES_MAX = 2_048;
/** Lines of one process that are logged. A package may write one for each call. */
const LINES_MAX = 100;
/** Memory of a process for JavaScript in MiB. One that needs more ends, and the gateway goes on. */
const HEAP_MIB = 512;

/**
 * Starts the process of a package. Node's permission model allows it to read the folders of packages and nothing else:
 * no connection, no other file, no program, no thread, no native addon. Its environment is empty. Throws
 * PackageUnusable.
 */
export function startWorker({ target, egress, log, times = WORKER_TIMES }: WorkerOptions): Worker {
  const { specifier, factory, from, readable } = findPackage(target);
  const ready = Promise.withResolvers<Socket>();
  const ended = Promise.withResolvers<string>();
  ready.promise.catch(() => {});
  const allowed = [...readable, ...ownFiles()].map((folder) => `--allow-fs-read=${folder}`);
  const child = spawn(
    process.execPath,
    ['--permission', ...allowed, '--disable-warning=ExperimentalWarning', `--max-old-space-size=${HEAP_MIB}`, PROGRAM],
    // A process group of its own: Ctrl-C in a terminal is for the gateway, which ends its calls first.
    { env: {}, detached: true, stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'ipc'] },
  );
  const tell = (message: ToWorker) => {
    if (child.connected) child.send(message, () => {});
  };
  const kill = () => void child.kill('SIGKILL');
  const fail = (why: string) => {
    ready.reject(startFailure(`${specifier}: ${why}`));
    kill();
  };

  let lines = 0;
  const output = createLines({
    bytesMax: LINE_BYTES_MAX,
    line: (text) => void (lines++ < LINES_MAX && log(text)),
    tooLong: (beginning) => void (lines++ < LINES_MAX && log(`${beginning}…`)),
  });
  child.stderr?.on('data', (chunk: Buffer) => output.push(chunk));

  let answeredAt = performance.now();
  const ping = setInterval(() => {
    if (performance.now() - answeredAt < times.stallMs) return tell('ping');
    log(`it did not answer for ${times.stallMs} ms, so it is ended`);
    kill();
  }, times.pingMs).unref();
  const late = setTimeout(() => fail(`it was not loaded within ${times.startMs} ms`), times.startMs).unref();
  const over = (how: string) => {
    clearInterval(ping);
    clearTimeout(late);
    fail(`its process ${how}`);
    ended.resolve(how);
  };

  child.on('message', (message: FromWorker) => {
    answeredAt = performance.now();
    if (message === 'ready') {
      clearTimeout(late);
      ready.resolve(child.stdio[3] as Socket);
    } else if (typeof message === 'object') fail(message.failed);
  });
  child.on('error', (error) => {
    if (child.pid === undefined) over(`could not be started: ${error.message}`);
  });
  child.on('exit', (code, signal) => over(signal === null ? `exited with code ${code}` : `was ended by ${signal}`));
  egress.serve(child.stdio[4] as Socket, providerOrigins(target));
  tell({ start: { specifier, from, factory, settings: providerSettings(target) } });
  return { calls: ready.promise, ended: ended.promise, kill };
}

const startFailure = (message: string): Error => Object.assign(new Error(message), { code: PACKAGE_FAILED });

/**
 * The code of tollgate, because a release has that of the program in shared files. Node also looks for the nearest
 * package.json, which says how to read them.
 */
const ownFiles = (): readonly string[] => [CODE, ...ancestorsOf(CODE).map((one) => join(one, 'package.json'))];

const ancestorsOf = (folder: string): readonly string[] => {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...ancestorsOf(above)];
};

/** The settings as a package takes them: `headers.x-org` of the block is `{ headers: { 'x-org': … } }`. */
function providerSettings({
  settings,
  secrets,
}: Pick<SdkTarget, 'settings' | 'secrets'>): Readonly<Record<string, unknown>> {
  const made: Record<string, unknown> = {};
  for (const [path, value] of Object.entries({ ...settings, ...secrets })) {
    const names = path.split('.');
    const last = names.pop()!;
    let place = made;
    for (const name of names) place = (place[name] ??= {}) as Record<string, unknown>;
    place[last] = value;
  }
  return made;
}

/** Origins that the operator wrote into the settings, such as that of `baseURL`. */
function providerOrigins({ settings }: SdkTarget): ReadonlySet<string> {
  const urls = Object.values(settings).map((value) => (typeof value === 'string' ? URL.parse(value) : null));
  return new Set(urls.flatMap((url) => (url && /^https?:$/.test(url.protocol) ? [url.origin] : [])));
}
