import type { IncomingHttpHeaders } from 'node:http';
import type { Scrub } from '#wire';
import type { ReplyHold } from './reply/reply-memory.ts';
import type { Endpoint, UpstreamRequest } from './call.ts';

/** One upstream reply as it arrives. */
export interface UpstreamReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Counts the bytes that the reader of the reply keeps; absent where they are not counted. */
  memory?: ReplyHold;
  /**
   * An error of the provider, JSON or not, without the secrets of its endpoint: every word of an error that is
   * passed on goes through this.
   */
  readonly scrub: Scrub;
  /**
   * The pieces of the body that arrived since the last read, at least one; null at its end. Throws or rejects with
   * UpstreamFailure when the reply breaks.
   */
  read(): readonly Uint8Array[] | null | Promise<readonly Uint8Array[] | null>;
  /** The end has arrived, and all before it was read: the next read gives null. */
  readonly ended: boolean;
  /** Nothing more is read: the little that may still come is dropped, so that the connection can serve another call. */
  discard(): void;
}

/** One request on its way. */
export interface UpstreamExchange {
  /**
   * Resolves with the response head; rejects with UpstreamFailure when no head came, or with the reason of `abort`.
   * Nobody has to wait for it.
   */
  readonly head: Promise<UpstreamReply>;
  /** The memory of its reply. */
  memory?: ReplyHold;
  /**
   * Stops the exchange at any time: the head, a pending or a later read fails with `reason`. Without effect once it
   * has ended.
   */
  abort(reason: Error): void;
  /** The call is over: unless the rest of the reply was discarded, the exchange is stopped where it has not ended. */
  over(): void;
}

/**
 * Sends one request to where an offer is served. A directly reached endpoint and a provider's tunnel look the same
 * from here.
 */
export interface Upstream {
  /**
   * `account`: whose share of the connections it takes one of. `last`: no other offer is left to try, so that a
   * request may wait for a provider that is away for a moment; default true.
   */
  send(endpoint: Endpoint, request: UpstreamRequest, account: string, last?: boolean): UpstreamExchange;
  close(): Promise<void>;
}

/** An Upstream for endpoints of one kind. */
export interface UpstreamOf<E extends Endpoint> {
  send(endpoint: E, request: UpstreamRequest, account: string, last?: boolean): UpstreamExchange;
  close(): Promise<void>;
}

export const CALL_OVER = new Error('the call is over');
