import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#errors';
import { ACCOUNT_HEADER, nobodyActs } from '#accounts';
import { refuseRepeatedCredentials } from '#auth';
import { addUpgrade, createSocketServer, type MessageSocket, refuseUpgrade, requestIdOf, toGatewayError } from '#http';
import type { Config } from '#config';
import { createEventTurns, type EventTurns, type OnRefused } from '#limits';
import type { createOriginGuard } from '#security';

/** A WebSocket of a client that was admitted. */
interface SocketSession {
  /** Resolves when it has ended. Does not reject. */
  serve(client: MessageSocket): Promise<void>;
  close(): void;
}

export interface Handshake {
  readonly request: IncomingMessage;
  readonly requestId: string;
  /** Aborts when the client leaves before the session is open. */
  readonly gone: AbortSignal;
}

interface SocketRoute {
  /** Below `/api/v1` and `/v1`. */
  readonly path: string;
  /** The name of a session in the log. */
  readonly target: string;
  /** Rejects with GatewayError, or PlainRequestsOnly, which answer the handshake. */
  open(handshake: Handshake): Promise<SocketSession>;
}

/** Why a client is to send plain requests to the same address instead. */
export class PlainRequestsOnly extends Error {}

const SUBPROTOCOL = 'realtime';
const SILENCE_MS = 60_000;

/** The WebSockets that clients open, and the bounds that all of them have together. The server must not listen yet. */
export class ClientSockets {
  readonly turns: EventTurns;
  /** How long the other end of a session may be silent. It answers pings. */
  readonly silenceMs = SILENCE_MS;
  readonly #server: FastifyInstance;
  readonly #guard: ReturnType<typeof createOriginGuard>;
  readonly #onRefused: OnRefused | undefined;
  readonly #sockets: ReturnType<typeof createSocketServer>;

  constructor(
    server: FastifyInstance,
    options: {
      readonly limits: Config['limits'];
      readonly guard: ReturnType<typeof createOriginGuard>;
      readonly onRefused?: OnRefused;
    },
  ) {
    const { limits } = options;
    this.#server = server;
    this.#guard = options.guard;
    this.#onRefused = options.onRefused;
    this.turns = createEventTurns({
      eventsPerSecond: limits.realtimeEventsPerSecond,
      bytesPerSecond: limits.realtimeBytesPerSecond,
    });
    this.#sockets = createSocketServer({
      messageBytesMax: limits.chatBodyBytesMax,
      protocol: SUBPROTOCOL,
      stallMs: limits.clientStallMs,
      silenceMs: SILENCE_MS,
    });
  }

  /** Adds a route. Returns a function that closes its open sessions. */
  add(route: SocketRoute, onError: (error: unknown) => void): () => void {
    const open = new Set<SocketSession>();
    for (const prefix of ['/api/v1', '/v1'])
      addUpgrade(
        this.#server,
        prefix + route.path,
        (request, wire, head) => void this.#accept(route, open, { request, wire, head }, onError),
      );
    return () => {
      for (const session of open) session.close();
    };
  }

  async #accept(
    route: SocketRoute,
    open: Set<SocketSession>,
    { request, wire, head }: { readonly request: IncomingMessage; readonly wire: Socket; readonly head: Buffer },
    onError: (error: unknown) => void,
  ): Promise<void> {
    const gone = new AbortController();
    const requestId = requestIdOf(request.headers);
    const leave = () => gone.abort(new Error('the client is gone'));
    const giveUp = () => wire.destroy();
    wire.on('error', giveUp);
    wire.on('close', leave);
    try {
      this.#check(request);
      const session = await route.open({ request, requestId, gone: gone.signal });
      open.add(session);
      try {
        const client = await this.#sockets.accept(request, wire, head);
        wire.off('error', giveUp);
        await session.serve(client);
      } finally {
        open.delete(session);
        session.close();
      }
    } catch (error) {
      if (gone.signal.aborted) return;
      if (error instanceof PlainRequestsOnly) return refuseUpgrade(wire, error.message, requestId);
      const known = toGatewayError(error);
      if (known.code === 'internal') onError(error);
      this.#onRefused?.({ error, caller: null, target: route.target, requestId });
      const dialect = request.url?.startsWith('/v1/') ? 'openai' : 'own';
      if (!wire.destroyed) refuseUpgrade(wire, known, requestId, dialect);
    } finally {
      wire.off('close', leave);
    }
  }

  /** Throws GatewayError for a page of another origin, and for credentials that no session has. */
  #check({ headers, rawHeaders }: IncomingMessage): void {
    const refusal = this.#guard(headers, rawHeaders);
    if (refusal !== null) throw new GatewayError('permission_denied', refusal);
    refuseRepeatedCredentials(rawHeaders);
    if (headers[ACCOUNT_HEADER] !== undefined) throw nobodyActs();
  }
}
