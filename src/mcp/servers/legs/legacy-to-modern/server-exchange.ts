import { membersOf, type ResponseMessage, splice, UpstreamFailure, withMembers } from '#wire';
import { type Offer, readReply, type UpstreamRequest } from '#gateway';
import { eventBytes } from '../../../turn/events.ts';
import { providerFailure, refuseCredentialStatus } from '../../../turn/provider-failure.ts';
import { MODERN_POST_HEADERS } from '../../post-headers.ts';
import { withMeta } from '../../../wire/meta.ts';
import { standardHeaders } from '../../../wire/param-headers.ts';
import type { LegacySession } from '../../../turn/session.ts';
import type { Place, Turn } from '../../../turn/turn.ts';
import { envelopeOf } from './envelope.ts';

export interface ServerExchangeOptions {
  /** Input schema of a tool; null where it is not known. */
  readonly schemaOf: (offer: Offer, tool: string) => unknown;
  readonly replyBytesMax: number;
}

/** One of the requests to a server that together are a client's one. */
export interface Round {
  /** From 1. */
  readonly number: number;
  /** Members of `params` that go on with the round before, JSON text by key. */
  readonly continued: Readonly<Record<string, string>>;
}

/**
 * Sends one round to the server: yields its notifications as events, returns its response. Throws UpstreamFailure,
 * and the reason of `cancelled` when that aborts: the end of the stream is how a modern server learns of it.
 */
type ServerExchange = (
  turn: Turn,
  session: LegacySession,
  place: Place,
  round: Round,
  cancelled: AbortSignal,
) => AsyncGenerator<Uint8Array, ResponseMessage, undefined>;

export function createServerExchange({ schemaOf, replyBytesMax }: ServerExchangeOptions): ServerExchange {
  return async function* exchange(turn, session, { offer, send }, round, cancelled) {
    cancelled.throwIfAborted();
    const id = `${turn.callId}.${round.number}`;
    const sent = send(requestOf(turn, session, offer, id, round));
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
        // Ids of the server's messages are not the client's, which would not know what is cancelled.
        if (message?.kind === 'notification' && turn.events && message.method !== 'notifications/cancelled')
          yield eventBytes(turn.toClient(message.text));
      }
      throw providerFailure('the provider ended its answer without a response', null);
    } catch (error) {
      throw error instanceof UpstreamFailure && error.retryable && !mayRetry(turn, round, error)
        ? providerFailure(error.message, error.status, error)
        : error;
    } finally {
      cancelled.removeEventListener('abort', abort);
    }
  };

  /** The client's bytes with an id that is unique over all clients, as theirs all begin at 0. */
  function requestOf(
    turn: Turn,
    session: LegacySession,
    offer: Offer,
    id: string,
    { continued }: Round,
  ): UpstreamRequest {
    const { method, params, text } = turn.message;
    const enveloped = withMeta(text, 'params', envelopeOf(session, turn.events));
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
      headers: { ...MODERN_POST_HEADERS, 'x-request-id': turn.callId, ...standardHeaders(method, params, schema) },
      body,
    };
  }
}

/** A tool that was reached may have acted; and what a server keeps from round to round no other server has. */
function mayRetry({ message }: Turn, { number }: Round, { unsent }: UpstreamFailure): boolean {
  return number === 1 && (unsent || message.method !== 'tools/call');
}
