import type { FastifyInstance } from 'fastify';

interface Closing {
  readonly server: FastifyInstance;
  /** The longest time that running calls may go on. */
  readonly drainMs: number;
  readonly inFlight: () => number;
  /** After this no new call begins. */
  readonly refuse: () => void;
  readonly closeTunnels: (drainMs: number) => Promise<unknown>;
  readonly closeRest: () => Promise<void>;
}

/** Longest wait for clients to read the end of their replies when the gateway stops. */
const LAST_BYTES_MS = 2_000;

/** Lets running calls finish within the drain limit, then closes everything. */
export async function closeGracefully({
  server,
  drainMs,
  inFlight,
  refuse,
  closeTunnels,
  closeRest,
}: Closing): Promise<void> {
  // The server still listens. So load balancers see the 503 of /health/ready, and clients get a 503 with Retry-After
  // instead of a refused connection.
  refuse();
  const until = performance.now() + drainMs;
  const tunnelsClosed = closeTunnels(drainMs);
  while (inFlight() > 0 && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 20));
  await tunnelsClosed;
  // The last bytes of finished replies may still be on their way. Replies that have not finished by now are cut.
  const idle = setInterval(() => server.server.closeIdleConnections(), 20);
  const cut = setTimeout(() => server.server.closeAllConnections(), inFlight() > 0 ? 0 : LAST_BYTES_MS);
  await server.close();
  clearInterval(idle);
  clearTimeout(cut);
  await closeRest();
}
