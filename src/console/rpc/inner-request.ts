import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { GatewayStopping } from '#errors';
import { CREDENTIAL_HEADERS } from '#security';
import { ACCOUNT_HEADER, NAME_HEADERS } from '#accounts';
import { OWN_TURN_BYTES, ownTurn } from '#wire';
import { MAX_COST_HEADER, QUOTE_HEADER } from '#call';
import { PAYMENT_HEADERS } from '#http';

/** One request to a route of this gateway. */
export interface InnerRequest {
  readonly verb: 'GET' | 'POST';
  /** Path with its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body?: string;
}

export interface InnerReply {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly bytes: Buffer;
}

/** The client's request for which an inner request is made. */
export interface Behalf {
  readonly carried: Carried;
  /** The address of the connection's peer: the client, or a proxy that names the client in `carried`. */
  readonly peer: string;
  readonly requestId: string;
  readonly gone: AbortSignal;
}

export type InnerRequester = (request: InnerRequest, behalf: Behalf) => Promise<InnerReply>;

/**
 * Makes requests to the same server from inside the process. Rejects with the reason of `gone` when the client leaves;
 * the route sees this like a closed socket. Rejects with GatewayStopping once the server is closing.
 */
export function createAsk(inject: FastifyInstance['inject']): InnerRequester {
  return async ({ verb, path, headers = {}, body }, { carried, peer, requestId, gone }) => {
    gone.throwIfAborted();
    const bytes = Buffer.from(body ?? '');
    const payload = abortable(bytes);
    const leave = () => payload.destroy(new Error('the client left', { cause: gone.reason }));
    gone.addEventListener('abort', leave, { once: true });
    try {
      const reply = await inject({
        method: verb,
        url: path,
        remoteAddress: peer,
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
      if (reply.rawPayload.byteLength > OWN_TURN_BYTES) await ownTurn();
      return { status: reply.statusCode, headers: flat(reply.headers), text: reply.payload, bytes: reply.rawPayload };
    } catch (error) {
      gone.throwIfAborted();
      if ((error as { readonly code?: unknown }).code === CLOSING) throw new GatewayStopping();
      throw error;
    } finally {
      gone.removeEventListener('abort', leave);
    }
  };
}

const CLOSING = 'FST_ERR_REOPENED_CLOSE_SERVER';

/**
 * A body stream that is not destroyed at its end. The `signal` of an injected request has no effect once its body was
 * read. But an error of a body stream always reaches the request, and through it the reply.
 */
function abortable(bytes: Buffer): Readable {
  const body = new Readable({ autoDestroy: false, read() {} });
  if (bytes.byteLength > 0) body.push(bytes);
  body.push(null);
  // The request adds its own listener later. Until then this one prevents an uncaught error.
  body.on('error', () => {});
  return body;
}

function copied(carried: Carried): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(carried).map(([name, values]) => [name, values.length === 1 ? values[0]! : [...values]]),
  );
}

function flat(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) result[name] = Array.isArray(value) ? value.join(', ') : String(value);
  return result;
}

/**
 * Headers of the request that are passed to the route of each entry. Those of a proxy are passed together with the
 * address of the connection's peer, so that a route sees the same client, host and protocol as this endpoint, and
 * trusts the same proxies. Headers about the body of this request are not passed.
 */
const INWARD: ReadonlySet<string> = new Set([
  ...CREDENTIAL_HEADERS,
  ...PAYMENT_HEADERS,
  ...NAME_HEADERS,
  ACCOUNT_HEADER,
  'host',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'a2a-extensions',
  'x-a2a-extensions',
  'origin',
  'user-agent',
  'traceparent',
  'x-session-id',
  'x-receipt',
  MAX_COST_HEADER,
  QUOTE_HEADER,
]);

/** Headers of a route's reply that are passed on with the reply to a single request. */
const OUTWARD = [
  'retry-after',
  'www-authenticate',
  'payment-required',
  'payment-response',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-tokens',
  'x-generation-id',
  'x-cost-usd',
  'x-provider',
  'x-tollgate-dropped',
  'x-tollgate-stops',
  'x-tollgate-wire',
  'x-max-tokens',
  'x-receipt',
  'idempotent-replayed',
] as const;

/**
 * Headers by lower-case name, with all values: a route can only refuse a repeated credential if it gets both values.
 */
type Carried = Readonly<Record<string, readonly string[]>>;

/**
 * The headers of a request that are passed to its entries. `rawHeaders`: IncomingMessage.rawHeaders, with names and
 * values in alternation.
 */
export function carriedOf(rawHeaders: readonly string[]): Carried {
  const carried: Record<string, string[]> = {};
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    if (INWARD.has(name)) (carried[name] ??= []).push(rawHeaders[at + 1]!);
  }
  return carried;
}

/** Whether a request has a credential. The routes check whether it is valid. */
export const hasCredential = (carried: Carried): boolean =>
  CREDENTIAL_HEADERS.some((name) => Object.hasOwn(carried, name));

export function toldOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  const result: Record<string, string> = {};
  for (const name of OUTWARD) {
    const value = headers[name];
    if (value !== undefined) result[name] = value;
  }
  return result;
}
