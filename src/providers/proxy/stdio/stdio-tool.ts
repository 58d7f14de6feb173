import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { CONSUMER_HEADER } from '#network/tunnel';
import { errorText, resultText } from '#json-rpc/message';
import type { Forward } from '../forward.ts';
import { createSessions, SESSION_HEADER, type Sessions } from './sessions.ts';
import { superviseServer, type SupervisorOptions, type Supervisor } from './supervisor.ts';
import { refuse, sendJson, takeWhole } from '../call-stream.ts';
import { MESSAGE_BYTES_MAX } from './child-process.ts';
import { envelopeOf, type Era, versionOf } from './era.ts';
import {
  ERROR,
  parseMessage,
  type RpcMessage,
  type RpcRequest,
  errorCodeOf,
  type Notification,
  statusOfError,
} from './json-rpc.ts';
import { acceptsEvents, createReply, isOpen, EVENTS_BYTES_MAX } from './reply.ts';
import type { Pipe } from './pipe.ts';

/** A tool that this proxy runs: its processes, and the handler of its calls. */
export interface StdioTool {
  readonly forward: Forward;
  drain(): void;
  stop(): Promise<void>;
  kill(): void;
}

/** Starts the tool's process. A legacy server that isn't shared gets one more process for each session. */
export function createStdioTool(options: SupervisorOptions): StdioTool {
  const supervisor = superviseServer(options);
  const sessions = createSessions(options);
  return {
    forward: createStdioForward(supervisor, sessions, options.target.shared),
    drain() {
      supervisor.drain();
      sessions.drain();
    },
    async stop() {
      await Promise.all([supervisor.stop(), sessions.stop()]);
    },
    kill() {
      supervisor.kill();
      sessions.kill();
    },
  };
}

/** A guess, because nobody knows when a session will end. */
const RETRY_AFTER_S = '5';

/**
 * Serves an MCP server that speaks over stdin and stdout as a Streamable HTTP server: each POST carries one JSON-RPC
 * message. `shared`: all clients share one process.
 */
function createStdioForward(supervisor: Supervisor, sessions: Sessions, shared: boolean): Forward {
  /** Set when a modern server refuses `initialize`, so that it isn't asked again. */
  let modernAlone = false;

  function post(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, message: RpcMessage): void {
    const id = headers[SESSION_HEADER];
    const begins = message.kind === 'request' && message.method === 'initialize' && envelopeOf(message) === null;
    if (typeof id === 'string' && !shared && !begins && envelopeOf(message) === null)
      return inSession(stream, headers, message, id);
    void supervisor.running().then((running) => {
      if (!isOpen(stream)) return;
      if (running === null) return refuse(stream, 'upstream_unreachable', gone(message));
      const { pipe, era } = running;
      if (begins && era.kind === 'legacy' && shared)
        return sendJson(stream, 200, resultText(message.idText, JSON.stringify(era.initialized)));
      if (begins && !shared && mayBegin(era)) return begin(stream, headers, message);
      const refusal = refusalOf(message, era, shared);
      if (refusal) return sendRefusal(stream, message, refusal);
      if (message.kind === 'request')
        return answerOnPipe({ stream, accept: headers.accept, request: message, pipe, era });
      if (message.kind === 'notification' && mayGoOnPipe(message, era)) pipe.pass(message);
      accepted(stream);
    });
  }

  function mayBegin(era: Era): boolean {
    return era.kind === 'legacy' || (era.discovered !== null && !modernAlone);
  }

  function begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, request: RpcRequest): void {
    const consumer = headers[CONSUMER_HEADER];
    const begun = sessions.begin(request, stream, {
      accept: headers.accept,
      // If the gateway doesn't send the header, all its clients count as one consumer.
      consumer: typeof consumer === 'string' ? consumer : '',
      refused(code) {
        modernAlone ||= code === ERROR.unsupportedVersion || code === ERROR.methodNotFound;
      },
    });
    if (begun) return;
    const text = 'this tool has reached its maximum number of sessions; try again later';
    sendJson(stream, 503, errorText(request.idText, { code: ERROR.process, message: text }), {
      'retry-after': RETRY_AFTER_S,
    });
  }

  function inSession(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, message: RpcMessage, id: string): void {
    const session = sessions.find(id);
    if (!session) return noSession(stream, message);
    if (message.kind === 'request')
      return session.ask(message, createReply({ stream, accept: headers.accept, id: message.idText }));
    if (session.pass(message)) accepted(stream);
    else refuse(stream, 'upstream_unreachable', gone(message));
  }

  /** Handles GET (open the session's stream) and DELETE (end the session). */
  function ofSession(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { [SESSION_HEADER]: id, ':method': method } = headers;
    if (shared || typeof id !== 'string' || (method !== 'GET' && method !== 'DELETE'))
      return sendJson(
        stream,
        405,
        errorText('null', { code: ERROR.invalidRequest, message: 'POST one JSON-RPC message' }),
        {
          allow: shared ? 'POST' : 'GET, POST, DELETE',
        },
      );
    const session = sessions.find(id);
    if (!session) return noSession(stream, null);
    if (method === 'DELETE') return void sessions.end(id).then(() => sendJson(stream, 200, '{}'));
    if (!acceptsEvents(headers.accept))
      return sendJson(
        stream,
        406,
        errorText('null', { code: ERROR.invalidRequest, message: 'a stream is text/event-stream' }),
      );
    if (!session.listen(stream))
      sendJson(
        stream,
        409,
        errorText('null', { code: ERROR.invalidRequest, message: 'this session already has a stream' }),
      );
  }

  return (stream, headers, rest) => {
    if (rest !== '' && rest !== '/' && rest[0] !== '?') return refuse(stream, 'unknown_service');
    if (headers[':method'] !== 'POST') return ofSession(stream, headers);
    takeWhole(stream, MESSAGE_BYTES_MAX, (body) => {
      if (body === null)
        return sendJson(
          stream,
          413,
          errorText('null', {
            code: ERROR.invalidRequest,
            message: `a message has at most ${MESSAGE_BYTES_MAX} bytes`,
          }),
        );
      const message = parseMessage(body.toString('utf8'));
      if (message === undefined)
        return sendJson(stream, 400, errorText('null', { code: ERROR.parse, message: 'Parse error' }));
      if (message === null)
        return sendJson(stream, 400, errorText('null', { code: ERROR.invalidRequest, message: 'Invalid Request' }));
      post(stream, headers, message);
    });
  };
}

const idTextOf = (message: RpcMessage | null): string => (message?.kind === 'request' ? message.idText : 'null');

function gone(message: RpcMessage): (text: string) => string {
  return (text) => errorText(idTextOf(message), { code: ERROR.process, message: text });
}

function accepted(stream: ServerHttp2Stream): void {
  if (isOpen(stream)) stream.respond({ ':status': 202 }, { endStream: true });
}

function noSession(stream: ServerHttp2Stream, message: RpcMessage | null): void {
  sendJson(
    stream,
    404,
    errorText(idTextOf(message), { code: ERROR.sessionNotFound, message: 'Session not found: begin with initialize' }),
  );
}

function sendRefusal(stream: ServerHttp2Stream, message: RpcMessage, { status, code, text, data }: ToolRefusal): void {
  sendJson(stream, status, errorText(idTextOf(message), { code, message: text, data }));
}

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

interface ToolRefusal {
  readonly status: number;
  readonly code: number;
  readonly text: string;
  readonly data?: unknown;
}

/** Returns why a message must not go to the shared process, or null if it may. */
function refusalOf(message: RpcMessage, era: Era, shared: boolean): ToolRefusal | null {
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
function mayGoOnPipe(notification: Notification, era: Era): boolean {
  if (NOTES_OF_ONE_CLIENT.has(notification.method)) return false;
  return era.kind === 'legacy' || era.discovered === null || envelopeOf(notification) !== null;
}

interface PipeCall {
  readonly stream: ServerHttp2Stream;
  readonly accept: string | undefined;
  readonly request: RpcRequest;
  readonly pipe: Pipe;
  readonly era: Era;
}

/**
 * Sends one request to the shared process and its answers to the client. If the client closes the stream, the request
 * is cancelled.
 */
function answerOnPipe({ stream, accept, request, pipe, era }: PipeCall): void {
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
