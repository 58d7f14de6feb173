import { availableParallelism, loadavg } from 'node:os';

/**
 * A bound in milliseconds that a machine with nothing else to do keeps easily, made longer by as much as this machine
 * has to do for each of its processors now, and by what it stood still for in the last half minute. What hangs, or
 * computes for too long, still breaks it.
 */
export const atThisLoad = (ms: number): number => {
  look();
  const stood = stops.reduce((sum, stop) => sum + (last - stop.at < LATELY_MS ? stop.ms : 0), 0);
  return Math.ceil(ms * Math.max(1, loadavg()[0]! / availableParallelism()) + stood);
};

const EVERY_MS = 50;
/** Shorter ones are what the load tells. */
const STOP_MS = 250;
const LATELY_MS = 30_000;

/** When this thread had no processor, and for how long. */
const stops: { readonly at: number; readonly ms: number }[] = [];
let last = performance.now();
let lastCpu = cpuNow();

function cpuNow(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
function look(): void {
  const [now, cpu] = [performance.now(), cpuNow()];
  const ms = now - last - EVERY_MS - (cpu - lastCpu);
  if (ms > STOP_MS) stops.push({ at: now, ms });
  if (stops.length > 100) stops.shift();
  [last, lastCpu] = [now, cpu];
}
setInterval(look, EVERY_MS).unref();
