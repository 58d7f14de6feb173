import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { once } from 'node:events';

const START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 5_000;

/** A process that the benchmark started and stops. */
export interface Program {
  readonly pid: number;
  readonly child: ChildProcess;
  /** The last 8 KiB of its output. */
  output(): string;
  /** Resolves when `ready` returns something. Rejects if the process ends before that, or after `startLimitMs`. */
  until<T>(ready: () => T | null | Promise<T | null>, what: string): Promise<T>;
  stop(): Promise<void>;
}

/** Environment variables that would change a target. They are not passed on. */
const NOT_INHERITED = /^(?:HOST|PORT|DATABASE_URL|REDIS_URL|NODE_OPTIONS|(?:TOLLGATE|OTEL|OPENAI)_.*)$/;

interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Default: this Node. */
  readonly file?: string;
  /** How long `until` waits. Default 30 s. */
  readonly startLimitMs?: number;
}

/**
 * Starts this Node with a script, or another program. Its stdin stays open as long as the benchmark runs, so that a
 * program that watches its stdin ends with the benchmark.
 */
export function startProgram(args: readonly string[], options: ProgramOptions = {}): Program {
  const { file = process.execPath, startLimitMs = START_LIMIT_MS } = options;
  const child = spawn(file, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !NOT_INHERITED.test(name))),
      NODE_ENV: 'production',
      ...options.env,
    },
    ...(options.cwd ? { cwd: options.cwd } : {}),
  });
  let output = '';
  const keep = (bytes: Buffer) => (output = (output + bytes.toString()).slice(-8192));
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  const program: Program = {
    pid: child.pid ?? 0,
    child,
    output: () => output,
    async until(ready, what) {
      const limit = performance.now() + startLimitMs;
      for (;;) {
        const answer = await ready();
        if (answer !== null) return answer;
        if (ended()) throw new Error(`${args[0]} ended before ${what}:\n${output}`);
        if (performance.now() > limit) throw new Error(`${args[0]}: waited ${startLimitMs} ms for ${what}:\n${output}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async stop() {
      if (ended()) return;
      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      const kill = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
      await exit;
      clearTimeout(kill);
    },
  };
  return program;
}

/** Waits for the line `{"port":n}` of a program. */
export function announcedPort(program: Program): Promise<number> {
  return program.until(() => {
    const line = /^\{"port":(\d+)\}$/m.exec(program.output());
    return line ? Number(line[1]) : null;
  }, 'its port');
}

/** Microseconds per tick in /proc. Linux has 100 ticks per second on all machines that this runs on. */
const TICK_US = 10_000;

/** User and system CPU microseconds of a stat file in /proc, with the name in it. The resolution is a tick of 10 ms. */
function readStat(path: string): { readonly name: string; readonly user: number; readonly system: number } {
  const stat = readFileSync(path, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    name: stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')),
    user: Number(fields[11]) * TICK_US,
    system: Number(fields[12]) * TICK_US,
  };
}

/**
 * CPU microseconds that were used so far, user and system, without child processes. For a process this includes all its
 * past and present threads, with a resolution of 10 ms. For a single thread the scheduler counts nanoseconds.
 */
export function cpuMicros(pid: number, thread?: number): number {
  if (thread !== undefined)
    return Number(/^\d+/.exec(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'))) / 1000;
  const { user, system } = readStat(`/proc/${pid}/stat`);
  return user + system;
}

/** Resident memory of a process, in bytes. */
export function residentBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kib?.[1] ?? 0) * 1024;
}

/**
 * CPU microseconds of the running threads, user and system, by thread name. Threads with the same name are added up.
 */
export function cpuByThread(pid: number): Map<string, { user: number; system: number }> {
  const threads = new Map<string, { user: number; system: number }>();
  for (const id of readdirSync(`/proc/${pid}/task`)) {
    let stat: ReturnType<typeof readStat>;
    try {
      stat = readStat(`/proc/${pid}/task/${id}/stat`);
    } catch {
      // The thread ended after it was listed.
      continue;
    }
    const { name, user, system } = stat;
    const before = threads.get(name) ?? { user: 0, system: 0 };
    threads.set(name, { user: before.user + user, system: before.system + system });
  }
  return threads;
}
