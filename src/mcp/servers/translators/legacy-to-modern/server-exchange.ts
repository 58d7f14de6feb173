import { membersOf, type ResponseMessage, splice, UpstreamFailure, withMembers } from '#wire';
import { type Offer, readReply, type UpstreamRequest } from '#gateway';
import { eventBytes } from '../../../request/events.ts';
import { providerFailure, refuseCredentialStatus, withoutResponse } from '../../../request/provider-failure.ts';
import { MODERN_POST_HEADERS } from '../../post-headers.ts';
import { withMeta } from '../../../wire/meta.ts';
import { standardHeaders } from '../../../wire/param-headers.ts';
import type { LegacySession } from '../../../request/session.ts';
import type { Place, McpRequest } from '../../../request/mcp-request.ts';
import { envelopeOf } from './envelope.ts';

export interface ServerExchangeOptions {
  /** Input schema of a tool; null if it is unknown. */
  readonly schemaOf: (offer: Offer, tool: string) => unknown;
  readonly replyBytesMax: number;
}

/** One of the requests to a server that together serve one request of a client. */
export interface Round {
  /** Starts at 1. */
  readonly number: number;
  /** Members of `params` that continue the previous round: JSON text by key. */
  readonly continued: Readonly<Record<string, string>>;
}

/**
 * Sends one round to the server. Yields the server's notifications as events, and returns its response. Throws
 * UpstreamFailure. If `cancelled` aborts, closes the stream, which cancels at a modern server, and throws the reason.
 */
type ServerExchange = (
  mcpRequest: McpRequest,
  session: LegacySession,
  place: Place,
  round: Round,
  cancelled: AbortSignal,
) => AsyncGenerator<Uint8Array, ResponseMessage, undefined>;

export function createServerExchange({ schemaOf, replyBytesMax }: ServerExchangeOptions): ServerExchange {
  return async function* exchange(mcpRequest, session, { offer, send }, round, cancelled) {
    cancelled.throwIfAborted();
    const id = `${mcpRequest.callId}.${round.number}`;
    const sent = send(requestOf(mcpRequest, session, offer, id, round));
    const abort = () => sent.abort(cancelled.reason as Error);
    cancelled.addEventListener('abort', abort, { once: true });
    try {
      const reply = await sent.head;
      refuseCredentialStatus(reply.status);
      for await (const { message } of readReply(reply, replyBytesMax)) {
        if (message?.kind === 'response' && (message.id === id || (message.id === null && message.error))) {
          reply.discard();
          return message;
        }
        // A server's `notifications/cancelled` has an id that the client does not know, so it is dropped.
        if (message?.kind === 'notification' && mcpRequest.events && message.method !== 'notifications/cancelled')
          yield eventBytes(mcpRequest.toClient(message.text));
      }
      throw withoutResponse(null);
    } catch (error) {
      throw error instanceof UpstreamFailure && error.retryable && !mayRetry(mcpRequest, round, error)
        ? providerFailure(error.message, error.status, error)
        : error;
    } finally {
      cancelled.removeEventListener('abort', abort);
    }
  };

  /**
   * The client's message with a new id that is unique over all clients. The clients' own ids are not, because they all
   * begin at 0.
   */
  function requestOf(
    mcpRequest: McpRequest,
    session: LegacySession,
    offer: Offer,
    id: string,
    { continued }: Round,
  ): UpstreamRequest {
    const { method, params, text } = mcpRequest.message;
    const enveloped = withMeta(text, 'params', envelopeOf(session, mcpRequest.events));
    const members = membersOf(enveloped);
    const { start, end } = members.get('id')!;
    const body = splice(enveloped, [
      { start, end, text: JSON.stringify(id) },
      withMembers(enveloped, members.get('params')!, continued),
    ]);
    const schema = method === 'tools/call' ? schemaOf(offer, String(params?.['name'])) : null;
    return {
      method: 'POST',
      path: '',
      headers: {
        ...MODERN_POST_HEADERS,
        'x-request-id': mcpRequest.callId,
        ...standardHeaders(method, params, schema),
      },
      body,
    };
  }
}

/**
 * No retry for a tool that was reached, because it may have acted. No retry of a later round, because another server
 * does not have the state of the earlier rounds.
 */
function mayRetry({ message }: McpRequest, { number }: Round, { unsent }: UpstreamFailure): boolean {
  return number === 1 && (unsent || message.method !== 'tools/call');
}
