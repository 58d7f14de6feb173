import type { IncomingHttpHeaders } from 'node:http';
import type { Scrub } from '#security';
import type { PiecedBody } from '#http';
import type { Endpoint } from '#catalog';
import type { ReplyHold } from './reply-memory.ts';

/** A request upstream, for one attempt. Header names are lower case. */
export interface UpstreamRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** Path below the endpoint's base URL, with a leading slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string | PiecedBody | null;
  /** The reply may begin late or pause for long: no timeout applies to its head or to its pauses. Default false. */
  readonly patient?: boolean;
  /**
   * The request only listens for events, for as long as its client likes, and causes no work. It is patient, and does
   * not use the connections that calls need. Default false.
   */
  readonly listens?: boolean;
  /**
   * A provider that gets it twice does nothing beyond its work. It is sent once more, on a new connection, if the
   * provider closed a connection that had served before, without a byte of the reply. A GET always is. Of a call, the
   * gateway decides, and an adapter may say false. Default false.
   */
  readonly repeatable?: boolean;
}

/**
 * Sends one request to the endpoint of an offer, either directly or through a provider's tunnel. The interface is the
 * same for both.
 */
export interface Upstream<E extends Endpoint = Endpoint> {
  /**
   * `account`: the request uses one connection of this account's share. `last`: no other offer is left to try, so the
   * request may wait for a provider that is away for a moment; default true.
   */
  send(endpoint: E, request: UpstreamRequest, account: string, last?: boolean): UpstreamExchange;
  close(): Promise<void>;
}

export interface UpstreamExchange {
  /**
   * Resolves with the response head. Rejects with UpstreamFailure if no head came, or with the reason of `abort`. It is
   * fine if nothing awaits it.
   */
  readonly head: Promise<UpstreamReply>;
  /** The whole request was written to a connection of the provider. Absent: not known, which counts as not sent. */
  readonly sent?: boolean;
  memory?: ReplyHold;
  /**
   * Stops the exchange at any time: the head, and a pending or later read, fail with `reason`. Has no effect after its
   * end.
   */
  abort(reason: Error): void;
  /** The call is over. Stops the exchange if it has not ended, unless the rest of the reply was discarded. */
  over(): void;
}

export interface UpstreamReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Counts the bytes that the reply's reader holds in memory; absent where they are not counted. */
  memory?: ReplyHold;
  /**
   * Removes the secrets of the provider's endpoint from an error text, JSON or not. Every error text that is passed on
   * goes through it.
   */
  readonly scrub: Scrub;
  /**
   * The chunks of the body that arrived since the last read, at least one; null at the end of the body. Throws or
   * rejects with UpstreamFailure if the reply breaks.
   */
  read(): readonly Uint8Array[] | null | Promise<readonly Uint8Array[] | null>;
  /** The body has ended and was read completely: the next read gives null. */
  readonly ended: boolean;
  /** Stops reading. The few bytes that may still come are dropped, so that the connection can serve another call. */
  discard(): void;
}

/** Sends a request to the offer of the attempt. Every exchange ends with the attempt. */
export type Send = (request: UpstreamRequest) => UpstreamExchange;

export const CALL_OVER = new Error('the call is over');

/** Size in bytes of the body of a request upstream. */
export const bodyBytes = (body: Uint8Array | string | PiecedBody): number =>
  typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
