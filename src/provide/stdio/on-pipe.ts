import type { ServerHttp2Stream } from 'node:http2';
import { errorText } from '#wire';
import { envelopeOf, versionOf, type Era } from './era.ts';
import { ERROR, errorCodeOf, type Message, type Notification, type Request } from './json-rpc.ts';
import { statusOfError } from './modern-status.ts';
import type { Pipe } from './pipe.ts';
import { createReply, EVENTS_BYTES_MAX } from './reply.ts';

/**
 * Requests to a legacy server that need no session, because the server answers them the same for everybody and keeps no
 * state.
 */
const WITHOUT_SESSION: ReadonlySet<string> = new Set([
  'ping',
  'tools/list',
  'resources/list',
  'resources/templates/list',
  'prompts/list',
]);

/** Requests that would change a shared server for all its clients. */
const OF_ONE_CLIENT: ReadonlySet<string> = new Set([
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
]);

/**
 * Notifications of a client about itself. They are not forwarded to a shared server, because its only client is this
 * proxy.
 */
const NOTES_OF_ONE_CLIENT: ReadonlySet<string> = new Set([
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
]);

const LISTEN = 'subscriptions/listen';

export interface Refusal {
  readonly status: number;
  readonly code: number;
  readonly text: string;
  readonly data?: unknown;
}

/** Returns why a message must not go to the shared process, or null if it may. */
export function refusalOf(message: Message, era: Era, shared: boolean): Refusal | null {
  if (era.kind === 'legacy') {
    if (!shared && (message.kind !== 'request' || !WITHOUT_SESSION.has(message.method)))
      return { status: 400, code: ERROR.invalidRequest, text: 'there is no session. Begin with initialize' };
    if (shared && message.kind === 'request' && OF_ONE_CLIENT.has(message.method))
      return {
        status: 200,
        code: ERROR.methodNotFound,
        text: `Method not found: all clients share this server, but ${message.method} concerns a single client`,
      };
    return null;
  }
  if (era.discovered === null || message.kind !== 'request') return null;
  // A request without an envelope would switch some servers to the legacy era for everybody. No server checks the
  // version of each request, so this code does.
  const requested = versionOf(message);
  const supported = era.discovered['supportedVersions'] as readonly unknown[];
  if (requested !== undefined && supported.includes(requested)) return null;
  return {
    status: 400,
    code: ERROR.unsupportedVersion,
    text: 'Unsupported protocol version',
    data: { supported, requested },
  };
}

/** Whether a notification may go to the shared process. Others are accepted and dropped. */
export function mayGoOnPipe(notification: Notification, era: Era): boolean {
  if (NOTES_OF_ONE_CLIENT.has(notification.method)) return false;
  return era.kind === 'legacy' || era.discovered === null || envelopeOf(notification) !== null;
}

interface PipeCall {
  readonly stream: ServerHttp2Stream;
  readonly accept: string | undefined;
  readonly request: Request;
  readonly pipe: Pipe;
  readonly era: Era;
}

/**
 * Sends one request to the shared process and its answers to the client. If the client closes the stream, the request
 * is cancelled.
 */
export function answerOnPipe({ stream, accept, request, pipe, era }: PipeCall): void {
  const reply = createReply({ stream, accept, id: request.idText });
  if (request.method === LISTEN && !reply.takesEvents())
    return reply.response(
      errorText(request.idText, { code: ERROR.invalidRequest, message: 'what is listened to is text/event-stream' }),
      406,
    );
  const cancel = pipe.ask(request, {
    notification(text) {
      if (reply.waiting() <= EVENTS_BYTES_MAX) reply.event(text);
    },
    response: (text, value) =>
      reply.response(text, era.kind === 'modern' ? statusOfError(errorCodeOf({ value })) : 200),
    end: reply.end,
    broken: () => reply.broken('upstream_broken'),
  });
  if (cancel === null) return reply.broken('upstream_unreachable');
  reply.whenOver(cancel);
  stream.on('aborted', cancel);
}
