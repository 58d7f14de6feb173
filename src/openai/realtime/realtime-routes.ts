import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { addUpgrade, createSocketServer, refuseUpgrade, requestIdOf, toGatewayError } from '#http';
import { REALTIME_PATH } from '#config/model-kinds';
import { requireAdmission } from '#auth';
import { createEventTurns, createStreamQuota } from '#limits';
import type { OpenSession, RealtimeDeps } from './open-session.ts';

export interface Realtime {
  /** No new session begins. Those that are open end once their running responses have. */
  drain(): void;
  close(): void;
}

const SUBPROTOCOL = 'realtime';
const SILENCE_MS = 60_000;

/** `GET /realtime`, a WebSocket, below `/api/v1` and `/v1`. The server must not listen yet. */
export function addRealtime(server: FastifyInstance, options: Omit<RealtimeDeps, 'turns' | 'silenceMs'>): Realtime {
  const { limits } = options.config;
  const turns = createEventTurns({
    eventsPerSecond: limits.realtimeEventsPerSecond,
    bytesPerSecond: limits.realtimeBytesPerSecond,
  });
  const deps: RealtimeDeps = { ...options, turns, silenceMs: SILENCE_MS };
  const quota = createStreamQuota({ max: limits.realtimeSessionsMax, lastsMs: limits.realtimeSessionMs });
  const sockets = createSocketServer({
    messageBytesMax: limits.chatBodyBytesMax,
    protocol: SUBPROTOCOL,
    stallMs: limits.clientStallMs,
    silenceMs: SILENCE_MS,
  });
  const open = new Set<OpenSession>();

  const accept = async (request: IncomingMessage, wire: Socket, head: Buffer): Promise<void> => {
    const gone = new AbortController();
    const requestId = requestIdOf(request.headers);
    const leave = () => gone.abort(new Error('the client is gone'));
    const giveUp = () => wire.destroy();
    wire.on('error', giveUp);
    wire.on('close', leave);
    try {
      // Loaded with the first session, because most gateways have none.
      const { openSession } = await import('./open-session.ts');
      const session = await openSession(deps, quota, request, requestId, gone.signal);
      open.add(session);
      try {
        const client = await sockets.accept(request, wire, head);
        wire.off('error', giveUp);
        await session.serve(client);
      } finally {
        open.delete(session);
        session.close();
      }
    } catch (error) {
      if (gone.signal.aborted) return;
      const known = toGatewayError(error);
      if (known.code === 'internal') deps.onError(error);
      deps.onRefused?.({ error, caller: null, target: 'realtime session', requestId });
      const dialect = request.url?.startsWith('/v1/') ? 'openai' : 'own';
      if (!wire.destroyed) refuseUpgrade(wire, known, requestId, dialect);
    } finally {
      wire.off('close', leave);
    }
  };

  for (const prefix of ['/api/v1', '/v1'])
    addUpgrade(server, `${prefix}${REALTIME_PATH}`, (request, wire, head) => void accept(request, wire, head));
  explainPlainRequests(server, deps.pipeline);
  return {
    drain: () => quota.drain(),
    close() {
      quota.drain();
      for (const session of open) session.close();
    },
  };
}

/** Answers requests to the path that are not a WebSocket handshake. */
function explainPlainRequests(server: FastifyInstance, { admit }: RealtimeDeps['pipeline']): void {
  void server.register(async (app) => {
    requireAdmission(app, admit);
    app.get(`/api/v1${REALTIME_PATH}`, { schema: { hide: true } }, (request, reply) =>
      reply
        .code(426)
        .headers({ upgrade: 'websocket', connection: 'upgrade', 'x-request-id': request.id })
        .send({
          error: {
            message:
              'This address takes WebSockets alone: open wss://…/v1/realtime?model=NAME. If your client did, something on the way dropped the headers Upgrade and Connection',
            type: 'invalid_request',
            code: 426,
            param: null,
          },
        }),
    );
  });
}
