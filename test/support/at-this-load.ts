import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';

/**
 * Scales a timeout in milliseconds by the machine's current load. On an idle machine the timeout stays as it is. It
 * gets longer by the load per processor, and by the time for which the machine stood still in the last half minute.
 * Code that hangs or computes for too long still exceeds it.
 */
export const atThisLoad = (ms: number): number => {
  look();
  const stood = stops.reduce((sum, stop) => sum + (last - stop.at < LATELY_MS ? stop.ms : 0), 0);
  // The average of a minute lags behind a run of several workers that has just begun.
  const load = Math.max(loadavg()[0]!, lately);
  return Math.ceil(ms * Math.max(1, load / availableParallelism()) + stood);
};

const EVERY_MS = 50;
/** Shorter stops are already part of the load. */
const STOP_MS = 250;
const LATELY_MS = 30_000;

/** The times at which this thread got no processor, and for how long. */
const stops: { readonly at: number; readonly ms: number }[] = [];
/** Taken here, because this module outlives test files that replace the clock for a while. */
const now = performance.now.bind(performance);
let last = now();
let lastCpu = cpuNow();
/** The threads of the machine that ran or waited for a processor, on average over the last seconds. */
let lately = 0;
const WEIGHT = 0.02;

function cpuNow(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
function look(): void {
  const [at, cpu] = [now(), cpuNow()];
  const ms = at - last - EVERY_MS - (cpu - lastCpu);
  if (ms > STOP_MS) stops.push({ at, ms });
  if (stops.length > 100) stops.shift();
  [last, lastCpu] = [at, cpu];
  lately += WEIGHT * (runnable() - lately);
}

/** Of Linux; elsewhere 0. The fourth field is like `3/512`. */
function runnable(): number {
  try {
    return Number(/ (\d+)\//.exec(readFileSync('/proc/loadavg', 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
setInterval(look, EVERY_MS).unref();
