import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { needsCredential } from '#accounts';
import type { Pipeline } from '#call';
import type { Config } from '#config';
import { GatewayStopping } from '#errors';
import { createStreamQuota } from '#limits';
import { ownerOf } from '#tasks';
import { type ClientSockets, type Handshake, PlainRequestsOnly } from '../../realtime/client-sockets.ts';
import type { Realtime } from '../../realtime/realtime-routes.ts';
import { ResponseSocket } from './response-socket.ts';

interface ResponseSocketsOptions {
  readonly pipeline: Pick<Pipeline, 'admitPoll'>;
  readonly config: Pick<Config, 'limits'>;
  readonly addressOf: (request: IncomingMessage) => string;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

/** `GET /responses`, a WebSocket, below `/api/v1` and `/v1`. The server must not listen yet. */
export function addResponseSockets(
  server: FastifyInstance,
  sockets: ClientSockets,
  { pipeline, config: { limits }, addressOf, now, onError }: ResponseSocketsOptions,
): Realtime {
  const max = limits.realtimeSessionsMax;
  const quota = createStreamQuota({ max, lastsMs: limits.realtimeSessionMs });
  const open = async ({ request, requestId }: Handshake): Promise<ResponseSocket> => {
    const { caller } = await pipeline.admitPoll(request.headers, addressOf(request), true);
    if (caller.anonymous) throw needsCredential();
    if (caller.wallet !== null)
      throw new PlainRequestsOnly('A wallet signs one request, and here are many: send each as a POST to this address');
    const slot = quota.take(ownerOf(caller));
    if (slot !== null)
      return new ResponseSocket({
        server,
        limits,
        turns: sockets.turns,
        now,
        onError,
        request,
        requestId,
        caller,
        slot,
      });
    if (quota.draining) throw new GatewayStopping();
    throw new PlainRequestsOnly(
      `This account has ${max} WebSockets open here, which is its limit: send the request as a POST to this address`,
    );
  };
  const close = sockets.add({ path: '/responses', target: 'WebSocket of responses', open }, onError);
  return {
    drain: () => quota.drain(),
    close() {
      quota.drain();
      close();
    },
  };
}
