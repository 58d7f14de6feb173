import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { once } from 'node:events';

const START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 5_000;

/** A process that the rig started, and ends. */
export interface Program {
  readonly pid: number;
  readonly child: ChildProcess;
  /** What it has written, its last 8 KiB. */
  output(): string;
  /** Resolves when `ready` has an answer; rejects when the process ends before, or after 30 s. */
  until<T>(ready: () => T | null | Promise<T | null>, what: string): Promise<T>;
  stop(): Promise<void>;
}

/** What would change a target if it were in the environment of whoever runs the bench. */
const NOT_INHERITED = /^(?:HOST|PORT|DATABASE_URL|REDIS_URL|NODE_OPTIONS|(?:TOLLGATE|OTEL|OPENAI)_.*)$/;

/**
 * Starts this Node with a script. stdin stays open as long as the rig lives, so that a program that watches it ends
 * with the rig.
 */
export function startProgram(
  args: readonly string[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly cwd?: string } = {},
): Program {
  const child = spawn(process.execPath, args, {
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
      const limit = performance.now() + START_LIMIT_MS;
      for (;;) {
        const answer = await ready();
        if (answer !== null) return answer;
        if (ended()) throw new Error(`${args[0]} ended before ${what}:\n${output}`);
        if (performance.now() > limit)
          throw new Error(`${args[0]}: waited ${START_LIMIT_MS} ms for ${what}:\n${output}`);
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

/** Waits for the line `{"port":n}` of a program of the rig. */
export function announcedPort(program: Program): Promise<number> {
  return program.until(() => {
    const line = /^\{"port":(\d+)\}$/m.exec(program.output());
    return line ? Number(line[1]) : null;
  }, 'its port');
}

/** Ticks of /proc in a second. Linux has 100 on every machine this runs on. */
const TICK_US = 10_000;

/** User and system CPU microseconds of a line of /proc, with the name that stands in it. By ticks of 10 ms. */
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
 * CPU microseconds used so far, user and system, without children. Of a process they are of all threads that it has or
 * had, by ticks of 10 ms; of one thread the scheduler counts them by the nanosecond.
 */
export function cpuMicros(pid: number, thread?: number): number {
  if (thread !== undefined)
    return Number(/^\d+/.exec(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'))) / 1000;
  const { user, system } = readStat(`/proc/${pid}/stat`);
  return user + system;
}

/** Resident memory of a process in bytes. */
export function residentBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kib?.[1] ?? 0) * 1024;
}

/** CPU microseconds by the name of threads that run, user and system apart; threads of one name are added up. */
export function cpuByThread(pid: number): Map<string, { user: number; system: number }> {
  const threads = new Map<string, { user: number; system: number }>();
  for (const id of readdirSync(`/proc/${pid}/task`)) {
    let stat: ReturnType<typeof readStat>;
    try {
      stat = readStat(`/proc/${pid}/task/${id}/stat`);
    } catch {
      // It ended after it was listed.
      continue;
    }
    const { name, user, system } = stat;
    const before = threads.get(name) ?? { user: 0, system: 0 };
    threads.set(name, { user: before.user + user, system: before.system + system });
  }
  return threads;
}
