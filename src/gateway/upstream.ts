import type { IncomingHttpHeaders } from 'node:http';
import type { Scrub } from '#wire';
import type { ReplyHold } from './reply/reply-memory.ts';
import type { Endpoint, UpstreamRequest } from './call.ts';

/** One upstream reply as it arrives. */
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

/** One request in flight. */
export interface UpstreamExchange {
  /**
   * Resolves with the response head. Rejects with UpstreamFailure if no head came, or with the reason of `abort`. It is
   * fine if nothing awaits it.
   */
  readonly head: Promise<UpstreamReply>;
  /** Counts the memory of its reply. */
  memory?: ReplyHold;
  /**
   * Stops the exchange at any time: the head, and a pending or later read, fail with `reason`. Has no effect after its
   * end.
   */
  abort(reason: Error): void;
  /** The call is over. Stops the exchange if it has not ended, unless the rest of the reply was discarded. */
  over(): void;
}

/**
 * Sends one request to the endpoint of an offer, either directly or through a provider's tunnel. The interface is the
 * same for both.
 */
export interface Upstream {
  /**
   * `account`: the request uses one connection of this account's share. `last`: no other offer is left to try, so the
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
