import { once } from 'node:events';
import { createServer } from 'node:net';
import { randomInt } from 'node:crypto';

/**
 * Below the ports that Linux (from 32768) and macOS (from 49152) give to whoever asks for any, connections that go out
 * among them: of those, a port that was free a moment ago is often taken in the next one on a busy machine.
 */
const FROM = 10_000;
const BELOW = 32_768;
const ATTEMPTS_MAX = 100;

/** Ports that this process has given out: two of its servers that start at once get two. */
const given = new Set<number>();

/**
 * A loopback port for a server that has to know it before it listens, or that comes back at it. Nobody gets it from
 * the system by chance; another process may still listen at it by its number.
 */
export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const port = randomInt(FROM, BELOW);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no free port among ${ATTEMPTS_MAX} of ${FROM} to ${BELOW - 1}`);
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  // Without an address: a server that listens on all of them has the port as well.
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
