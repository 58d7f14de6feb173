import type { FastifyReply, FastifyRequest } from 'fastify';
import { createHttpSink, createKeepAlive, createSilent, GatewayError } from '#wire';
import type { Config } from '#config';
import { type Admission, createStreamQuota, rateHeaders, type Counter } from '#gateway';
import type { KeptResponse } from '#tasks';
import { notStreamed } from '../kept/errors.ts';
import type { Background } from './background.ts';

export interface SendStreamDeps {
  readonly background: Pick<Background, 'isStreamed' | 'follow'>;
  readonly config: { readonly limits: Pick<Config['limits'], 'clientStallMs' | 'listensMax'> };
  /** Open streams of accounts, also at other routes. */
  readonly listeners: Counter;
  readonly keepAliveMs?: number | undefined;
}

interface Asking {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly admission: Admission;
}

const KEEP_ALIVE_MS = 15_000;
const COMMENT = Buffer.from(': keep-alive\n\n');

/** Sends the stream of a response that is made in the background to a client that asks for it. */
export function createSendStream({ background, config, listeners, keepAliveMs = KEEP_ALIVE_MS }: SendStreamDeps) {
  const { clientStallMs, listensMax } = config.limits;
  const keepAlive = createKeepAlive(keepAliveMs);
  const places = createStreamQuota({ max: listensMax, ofAccount: listeners });

  return async (
    found: KeptResponse,
    after: number | undefined,
    { request, reply, admission: { caller, rate } }: Asking,
  ): Promise<void> => {
    if (!(await background.isStreamed(found.id))) throw notStreamed(found.id);
    const place = places.take(caller.account);
    if (place === null) {
      const { code, message } = places.refusal();
      throw new GatewayError(code, message);
    }
    const client = createHttpSink(
      reply,
      clientStallMs,
      () => {},
      () => ({ ...rateHeaders(rate), 'request-id': request.id }),
    );
    const silent = createSilent(() => void client.write(COMMENT));
    const over = () => client.cut();
    place.over.addEventListener('abort', over);
    const memory = request.server.requestBodies.beside(request);
    keepAlive.watch(silent);
    try {
      await background.follow(found, after ?? -1, client, memory);
    } finally {
      memory.release();
      keepAlive.forget(silent);
      place.over.removeEventListener('abort', over);
      place.leave();
    }
  };
}
