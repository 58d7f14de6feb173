import type { ServerHttp2Stream } from 'node:http2';
import { errorText } from '#wire';
import { envelopeOf, versionOf, type Era } from './era.ts';
import { ERROR, errorCodeOf, type Message, type Notification, type Request } from './json-rpc.ts';
import { statusOfError } from './modern-status.ts';
import type { Pipe } from './pipe.ts';
import { createReply, EVENTS_BYTES_MAX } from './reply.ts';

/** Requests to a legacy server that need no session: it answers the same to everybody, and keeps nothing of them. */
const WITHOUT_SESSION: ReadonlySet<string> = new Set([
  'ping',
  'tools/list',
  'resources/list',
  'resources/templates/list',
  'prompts/list',
]);

/** Requests that change a server for all clients that share it. */
const OF_ONE_CLIENT: ReadonlySet<string> = new Set([
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
]);

/**
 * Notifications of one client about itself. The server has one client on this pipe, which is this proxy, and takes
 * them for this proxy's.
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

/** Why a message is not for the process that everybody has, or null when it is. */
export function refusalOf(message: Message, era: Era, shared: boolean): Refusal | null {
  if (era.kind === 'legacy') {
    if (!shared && (message.kind !== 'request' || !WITHOUT_SESSION.has(message.method)))
      return { status: 400, code: ERROR.invalidRequest, text: 'there is no session: begin with initialize' };
    if (shared && message.kind === 'request' && OF_ONE_CLIENT.has(message.method))
      return {
        status: 200,
        code: ERROR.methodNotFound,
        text: `Method not found: this server is shared by all of its clients, and ${message.method} is about one`,
      };
    return null;
  }
  if (era.discovered === null || message.kind !== 'request') return null;
  // Without an envelope some servers would speak the legacy era to everybody from then on; and none looks at the
  // version of each request.
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

/** Whether a notification may go to the process that everybody has; others are taken and dropped. */
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

/** One request to the process that everybody has, and what comes back for it. Closing the stream cancels it. */
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
