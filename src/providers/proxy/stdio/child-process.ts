import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createLines } from '#wire';
import type { CommandTarget } from '#config';
import { createInOrder } from './in-order.ts';

/** Longest message in either direction, in bytes. */
export const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
/** The most bytes that may be buffered for a process that doesn't read. */
const WAITING_BYTES_MAX = 2 * MESSAGE_BYTES_MAX;
const LOG_LINE_BYTES_MAX = 2_048;

/** The variables of the proxy's environment that a process gets. They contain no secrets. */
const PASSED_ON = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];

interface ChildOptions {
  readonly target: CommandTarget;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called with each line of stdout. While a promise of it or of `tooLong` is open, stdout is not read. */
  readonly line: (text: string) => Promise<void> | void;
  /** Called with the beginning of a line of stdout that is longer than MESSAGE_BYTES_MAX. */
  readonly tooLong: (beginning: string) => Promise<void> | void;
  /** Called with the last bytes of such a line. */
  readonly tooLongEnd: (ending: string) => void;
  /** Called with each line of stderr, shortened. */
  readonly complaint: (text: string) => void;
}

export interface Child {
  /** Writes one line. Returns false if the process has ended, or if too many bytes wait for it already. */
  send(text: string): boolean;
  /** Settles with a text that says how the process ended, after its output is read. */
  readonly ended: Promise<string>;
  /** Ends the process: closes stdin, then sends SIGTERM, then SIGKILL. Settles like `ended`. */
  stop(times: StopTimes): Promise<string>;
  /** Sends SIGKILL to the process and its children. */
  kill(): void;
}

export interface StopTimes {
  readonly termMs: number;
  readonly killMs: number;
}

/** Time for the rest of the output after the process has ended. */
const FLUSH_MS = 500;

/**
 * Starts a process without a shell. It gets its own process group, so that its children can be ended together with it.
 */
export function startChild({ target, env, line, tooLong, tooLongEnd, complaint }: ChildOptions): Child {
  const child = spawnProcess(target, env);
  if ('notStarted' in child)
    return { ended: child.notStarted, send: () => false, stop: () => child.notStarted, kill() {} };
  const ended = Promise.withResolvers<string>();
  let over = false;
  const signal = (name: NodeJS.Signals) => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, name);
    } catch {
      // The whole group has ended.
    }
  };

  child.stdin.on('error', () => {});
  // What waits is one line of the most bytes, and the rest of the chunk in which it ended.
  const order = createInOrder({ hold: () => child.stdout.pause(), release: () => child.stdout.resume() });
  const output = createLines({
    bytesMax: MESSAGE_BYTES_MAX,
    line: (text) => order.add(text.length, () => line(text)),
    tooLong: (beginning) => order.add(beginning.length, () => tooLong(beginning)),
    tooLongEnd: (ending) => order.add(ending.length, () => tooLongEnd(ending)),
  });
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
  child.stdout.on('end', () => output.end());
  const complaints = createLines({
    bytesMax: LOG_LINE_BYTES_MAX,
    line: complaint,
    tooLong: (beginning) => complaint(`${beginning}…`),
  });
  child.stderr.on('data', (chunk: Buffer) => complaints.push(chunk));
  child.stderr.on('end', () => complaints.end());
  child.on('error', (error: NodeJS.ErrnoException) => {
    if (child.pid === undefined) ended.resolve(cannotStart(error));
  });
  child.on('exit', (code, exitSignal) => {
    over = true;
    const how = exitSignal === null ? `exited with code ${code}` : `was ended by ${exitSignal}`;
    // Children that the process left behind would keep its output open.
    signal('SIGKILL');
    const settle = () => order.idle().then(() => ended.resolve(how));
    let flush: NodeJS.Timeout | undefined;
    void order.idle().then(() => (flush = setTimeout(settle, FLUSH_MS)));
    child.on('close', () => {
      clearTimeout(flush);
      void settle();
    });
  });

  return {
    ended: ended.promise,
    send(text) {
      if (over || child.stdin.writableLength > WAITING_BYTES_MAX) return false;
      child.stdin.write(`${text}\n`);
      return true;
    },
    async stop({ termMs, killMs }) {
      child.stdin.end();
      const timers = [setTimeout(signal, termMs, 'SIGTERM'), setTimeout(signal, killMs, 'SIGKILL')];
      const how = await ended.promise;
      for (const timer of timers) clearTimeout(timer);
      return how;
    },
    kill: () => signal('SIGKILL'),
  };
}

/**
 * Node reports some errors of a start with an event, such as a missing program. It throws others, such as a directory
 * that is a file, and an exception here would end the proxy. Without free file descriptors it makes no pipes.
 */
function spawnProcess(
  { command, args, env: own, cwd }: CommandTarget,
  env: ChildOptions['env'],
): ChildProcessWithoutNullStreams | { readonly notStarted: Promise<string> } {
  const passed = Object.fromEntries(PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
  try {
    const child = spawn(command, [...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...passed, ...own },
      detached: true,
      ...(cwd === null ? {} : { cwd }),
    });
    if ((child.stdin as unknown) !== undefined) return child;
    return { notStarted: once(child, 'error').then(([error]) => cannotStart(error as Error)) };
  } catch (error) {
    return { notStarted: Promise.resolve(cannotStart(error as Error)) };
  }
}

const cannotStart = ({ code, message }: NodeJS.ErrnoException): string => `cannot be started (${code ?? message})`;
