import { Server } from 'node:net';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { GatewayStopping } from '#errors';
import type { Authenticate } from '#accounts';

interface Closing {
  readonly server: FastifyInstance;
  /** Stops taking connections; absent for a server that takes them to its end, to answer that it stops. */
  readonly stopAccepting?: () => Promise<void>;
  /** The longest time that running calls may go on. */
  readonly drainMs: number;
  readonly inFlight: () => number;
  /** After this no new call begins. */
  readonly refuse: () => void;
  /** Ends the calls that still run, with an error for their clients. */
  readonly stopCalls: () => void;
  readonly closeTunnels: (drainMs: number) => Promise<unknown>;
  readonly closeRest: () => Promise<void>;
}

/** Longest wait for calls to end that were stopped, and for clients to read the end of their replies. */
const LAST_BYTES_MS = 2_000;

const IDLE_CHECK_MS = 20;
/** Requests of connections that were accepted last come within this time, and are served. */
const STRAGGLERS_MS = 500;

/** Asks the clients of a server to connect elsewhere, in two steps. */
interface ConnectionRelease {
  /** From here on each answer ends its connection. So proxies let go of a connection between two requests. */
  ask(): void;
  /**
   * Refuses new connections and closes idle ones, until the server is closed. A proxy without health checks, such as
   * nginx, sends a call to the next gateway if a connection is refused, but not after an answer of 503, because a POST
   * may have had an effect. Resolves when requests of connections that were taken before have come.
   */
  stopAccepting(): Promise<void>;
}

export function createConnectionRelease({ server }: FastifyInstance): ConnectionRelease {
  return {
    ask: () =>
      void server.prependListener('request', (_request, response) => response.setHeader('connection', 'close')),
    async stopAccepting() {
      await acceptedAll(server);
      // The method of http.Server closes idle connections once, and no longer checks the time limits of requests.
      Server.prototype.close.call(server);
      const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
      server.once('close', () => clearInterval(idle));
      server.closeIdleConnections();
      await delay(STRAGGLERS_MS);
    },
  };
}

/**
 * Resolves when the connections are accepted that the system has taken for the server: closing it would reset them, and
 * lose the requests that a proxy has sent on them. A turn of the event loop accepts one.
 */
async function acceptedAll(server: Server): Promise<void> {
  let isNew = false;
  const note = () => (isNew = true);
  server.on('connection', note);
  const until = performance.now() + STRAGGLERS_MS;
  do {
    isNew = false;
    // A turn has its connections before its callbacks of setImmediate. The first one may be this turn.
    await setImmediate();
    await setImmediate();
  } while (isNew && performance.now() < until);
  server.off('connection', note);
}

/** Lets running calls finish within the drain limit, then closes everything. */
export async function closeGracefully({
  server,
  stopAccepting,
  drainMs,
  inFlight,
  refuse,
  closeTunnels,
  stopCalls,
  closeRest,
}: Closing): Promise<void> {
  // Without `stopAccepting` the server still listens. So load balancers see the 503 of /health/ready, and clients get a
  // 503 with Retry-After instead of a refused connection.
  await stopAccepting?.();
  refuse();
  const until = performance.now() + drainMs;
  // Begun before the timers of the tunnels, so that a call ends by this and not by the end of its tunnel.
  const stopping = setTimeout(stopCalls, drainMs);
  const tunnelsClosed = closeTunnels(drainMs);
  while (inFlight() > 0 && performance.now() < until + LAST_BYTES_MS) await delay(IDLE_CHECK_MS);
  clearTimeout(stopping);
  await tunnelsClosed;
  // The last bytes of finished replies may still be on their way. Replies that have not finished by now are cut.
  const idle = setInterval(() => server.server.closeIdleConnections(), IDLE_CHECK_MS);
  const cut = setTimeout(() => server.server.closeAllConnections(), inFlight() > 0 ? 0 : LAST_BYTES_MS);
  await server.close();
  clearInterval(idle);
  clearTimeout(cut);
  await closeRest();
}

/**
 * The state of a gateway that stops. First it is unready and serves on, then running calls go on and no new one begins.
 */
export interface Drain {
  /** Authenticates callers. After `begin` it throws GatewayStopping. */
  readonly authenticate: Authenticate;
  /** From here on load balancers are told to take another gateway. */
  announce(): void;
  begin(): void;
  /** Whether a stop was announced or has begun. */
  readonly announced: () => boolean;
}

export function createDrain(authenticate: Authenticate): Drain {
  let announced = false;
  let begun = false;
  return {
    authenticate(headers, address, calls) {
      if (!begun) return authenticate(headers, address, calls);
      throw new GatewayStopping();
    },
    announce: () => {
      announced = true;
    },
    begin: () => {
      announced = true;
      begun = true;
    },
    announced: () => announced,
  };
}
