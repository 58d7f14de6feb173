import { createServer } from 'node:http';
import { PerformanceObserver } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/** The longest stalls of an event loop since they were last asked for, in milliseconds. */
export interface Stalls {
  /** From one look at the clock to the next, less what a look at rest takes: what everybody else waited. */
  readonly delayMs: number;
  /** What the loop's own thread computed in one such time. A busy machine makes the delay longer, and not this. */
  readonly cpuMs: number;
  /** The longest pause for garbage. */
  readonly garbageMs: number;
}

const EVERY_MS = 4;

/** Loaded before a program (`--import`), it tells the program's stalls at the socket that STALLS_SOCKET names. */
const path = process.env['STALLS_SOCKET'];
if (isMainThread && path) {
  let delayMs = 0;
  let cpuMs = 0;
  let garbageMs = 0;
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
    last = now;
    lastCpu = cpu;
  }, EVERY_MS).unref();
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) garbageMs = Math.max(garbageMs, duration);
  }).observe({ entryTypes: ['gc'] });
  createServer((_request, response) => {
    // The time that runs now counts as well.
    setTimeout(() => {
      response.end(JSON.stringify({ delayMs, cpuMs, garbageMs } satisfies Stalls));
      delayMs = cpuMs = garbageMs = 0;
    }, 2 * EVERY_MS);
  })
    // A process that the program starts is not watched.
    .on('error', () => {})
    .listen(path)
    .unref();
}
