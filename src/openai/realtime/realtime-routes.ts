import type { FastifyInstance } from 'fastify';
import { REALTIME_PATH } from '#config/model-kinds';
import { requireAdmission } from '#auth';
import { createStreamQuota } from '#limits';
import type { ClientSockets, Handshake } from './client-sockets.ts';
import type { RealtimeDeps } from './open-session.ts';

/** Sessions of clients. */
export interface Realtime {
  /** No new session begins. Those that are open end once their running responses have. */
  drain(): void;
  close(): void;
}

/** `GET /realtime`, a WebSocket, below `/api/v1` and `/v1`. The server must not listen yet. */
export function addRealtime(
  server: FastifyInstance,
  sockets: ClientSockets,
  options: Omit<RealtimeDeps, 'turns' | 'silenceMs'>,
): Realtime {
  const { limits } = options.config;
  const deps: RealtimeDeps = { ...options, turns: sockets.turns, silenceMs: sockets.silenceMs };
  const quota = createStreamQuota({ max: limits.realtimeSessionsMax, lastsMs: limits.realtimeSessionMs });
  const route = {
    path: REALTIME_PATH,
    target: 'realtime session',
    open: async (handshake: Handshake) => {
      // Loaded with the first session, because most gateways have none.
      const { openSession } = await import('./open-session.ts');
      return openSession(deps, quota, handshake);
    },
  };
  const close = sockets.add(route, deps.onError);
  explainPlainRequests(server, deps.pipeline);
  return {
    drain: () => quota.drain(),
    close() {
      quota.drain();
      close();
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
