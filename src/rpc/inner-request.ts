import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#wire';
import type { Carried } from './headers.ts';

/** One request to a door of this gateway. */
export interface InnerRequest {
  readonly verb: 'GET' | 'POST';
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body?: string;
}

export interface InnerReply {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly bytes: Buffer;
}

/** On whose behalf it is made. */
export interface Behalf {
  readonly carried: Carried;
  /** Of the client. */
  readonly address: string;
  readonly requestId: string;
  /** Aborts when the client leaves. */
  readonly gone: AbortSignal;
}

export type Ask = (request: InnerRequest, behalf: Behalf) => Promise<InnerReply>;

/**
 * Requests to the same server from inside. Rejects with the reason of `gone` when the client leaves, which the door
 * learns as it would from a socket that closes, and with GatewayError `service_unavailable` once the server is
 * closing.
 */
export function createAsk(inject: FastifyInstance['inject']): Ask {
  return async ({ verb, path, headers = {}, body }, { carried, address, requestId, gone }) => {
    gone.throwIfAborted();
    const bytes = Buffer.from(body ?? '');
    const payload = abortable(bytes);
    const leave = () => payload.destroy(new Error('the client left', { cause: gone.reason }));
    gone.addEventListener('abort', leave, { once: true });
    try {
      const reply = await inject({
        method: verb,
        url: path,
        remoteAddress: address,
        headers: {
          ...copied(carried),
          accept: 'application/json',
          'x-request-id': requestId,
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': String(bytes.byteLength) }),
          ...headers,
        },
        payload,
      });
      return { status: reply.statusCode, headers: flat(reply.headers), text: reply.payload, bytes: reply.rawPayload };
    } catch (error) {
      gone.throwIfAborted();
      if ((error as { readonly code?: unknown }).code === CLOSING)
        throw new GatewayError(
          'service_unavailable',
          'This gateway is shutting down; retry on another or in a moment',
          {
            retryAfterS: 1,
            cause: error,
          },
        );
      throw error;
    } finally {
      gone.removeEventListener('abort', leave);
    }
  };
}

const CLOSING = 'FST_ERR_REOPENED_CLOSE_SERVER';

/**
 * A body whose end does not destroy it. The `signal` of an injected request is without effect once its body was
 * read, whereas the failure of a body that is a stream always reaches the request, and through it the reply.
 */
function abortable(bytes: Buffer): Readable {
  const body = new Readable({ autoDestroy: false, read() {} });
  if (bytes.byteLength > 0) body.push(bytes);
  body.push(null);
  // The request listens, but not before it is made.
  body.on('error', () => {});
  return body;
}

function copied(carried: Carried): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(carried).map(([name, values]) => [name, values.length === 1 ? values[0]! : [...values]]),
  );
}

function flat(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) found[name] = Array.isArray(value) ? value.join(', ') : String(value);
  return found;
}
