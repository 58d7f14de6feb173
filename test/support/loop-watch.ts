import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { PerformanceObserver } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/** The longest stalls of an event loop since the last request, in milliseconds. */
export interface Stalls {
  /**
   * The longest time between two looks at the clock, minus the interval itself. All other work of the loop waited this
   * long.
   */
  readonly delayMs: number;
  /**
   * The most CPU time of the loop's thread in one such interval. Unlike the delay, it doesn't grow on a busy machine.
   */
  readonly cpuMs: number;
  /** The longest pause of the garbage collector. */
  readonly garbageMs: number;
  /** The same as `cpuMs` without the garbage collector's pauses in the same interval. */
  readonly workMs: number;
}

const EVERY_MS = 4;

/** Loaded before a program with `--import`. Reports the program's stalls at the socket in STALLS_SOCKET. */
const path = process.env['STALLS_SOCKET'];
if (isMainThread && path) {
  let delayMs = 0;
  let cpuMs = 0;
  let garbageMs = 0;
  /** Intervals with much CPU time, and the pauses of the garbage collector. Times are those of the clock. */
  let busy: { readonly from: number; readonly to: number; readonly cpuMs: number }[] = [];
  let pauses: { readonly from: number; readonly to: number }[] = [];
  const workIn = ({ from, to, cpuMs: ms }: (typeof busy)[number]) =>
    ms -
    Math.min(
      ms,
      pauses.reduce((sum, one) => sum + Math.max(0, Math.min(to, one.to) - Math.max(from, one.from)), 0),
    );
  const cpuNow = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let last = performance.now();
  let lastCpu = cpuNow();
  setInterval(() => {
    const now = performance.now();
    const cpu = cpuNow();
    delayMs = Math.max(delayMs, now - last - EVERY_MS);
    cpuMs = Math.max(cpuMs, cpu - lastCpu);
    if (cpu - lastCpu > 2 * EVERY_MS) busy.push({ from: last, to: now, cpuMs: cpu - lastCpu });
    last = now;
    lastCpu = cpu;
  }, EVERY_MS).unref();
  new PerformanceObserver((list) => {
    for (const { duration, startTime } of list.getEntries()) {
      garbageMs = Math.max(garbageMs, duration);
      pauses.push({ from: startTime, to: startTime + duration });
    }
  }).observe({ entryTypes: ['gc'] });
  const server = createServer((_request, response) => {
    // Waits two intervals, so that a stall that is just happening counts as well.
    setTimeout(() => {
      const workMs = Math.max(0, ...busy.map(workIn));
      response.end(JSON.stringify({ delayMs, cpuMs, garbageMs, workMs } satisfies Stalls));
      delayMs = cpuMs = garbageMs = 0;
      [busy, pauses] = [[], []];
    }, 2 * EVERY_MS);
  })
    // Child processes of the program aren't watched, because the socket is in use. A program that replaces itself by
    // another Node leaves a socket at which nobody listens.
    .on('error', () => {
      const other = connect(path)
        .on('connect', () => other.destroy())
        .on('error', () => {
          rmSync(path, { force: true });
          server.listen(path).unref();
        });
    })
    .listen(path)
    .unref();
}
