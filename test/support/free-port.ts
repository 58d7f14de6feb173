import { once } from 'node:events';
import { createServer } from 'node:net';
import { randomInt } from 'node:crypto';

/**
 * Below the ephemeral ports of Linux (from 32768) and macOS (from 49152), which the system also gives to outgoing
 * connections. On a busy machine, an ephemeral port that is free now is often taken a moment later.
 */
const FROM = 10_000;
const BELOW = 32_768;
const ATTEMPTS_MAX = 100;
/** Each worker of a run has ports of its own: two that look at once could otherwise find the same one free. */
const LANES = 8;
const LANE = Number(process.env['VITEST_POOL_ID'] ?? 0) % LANES;

/** Ports that this process has returned. Two servers that start at the same time get different ports. */
const given = new Set<number>();

/**
 * Finds a free loopback port, for a server that must know its port before it listens, or that restarts on it. The
 * system gives this port to nobody by chance. Another process could still listen on it by its number.
 */
export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const port = randomInt(FROM / LANES, BELOW / LANES) * LANES + LANE;
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no free port among ${ATTEMPTS_MAX} of ${FROM} to ${BELOW - 1}`);
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  // Listens on all addresses, because another server may use the port on all of them.
  probe.listen(port);
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}
