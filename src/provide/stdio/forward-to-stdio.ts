import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { CONSUMER_HEADER } from '#network/tunnel';
import { errorText, resultText } from '#wire';
import type { Forward } from '../forward.ts';
import { refuse, sendJson } from '../own-reply.ts';
import { takeWhole } from '../request-body.ts';
import { MESSAGE_BYTES_MAX } from './child-process.ts';
import { envelopeOf, type Era } from './era.ts';
import { ERROR, parseMessage, type Message, type Request } from './json-rpc.ts';
import { answerOnPipe, mayGoOnPipe, refusalOf, type Refusal } from './on-pipe.ts';
import { acceptsEvents, createReply, isOpen } from './reply.ts';
import { SESSION_HEADER, type Sessions } from './sessions.ts';
import type { Supervisor } from './supervisor.ts';

/** A guess, because nobody knows when a session will end. */
const RETRY_AFTER_S = '5';

interface StdioForwardOptions {
  readonly supervisor: Supervisor;
  readonly sessions: Sessions;
  /** Whether all clients share one process. */
  readonly shared: boolean;
}

/**
 * Serves an MCP server that speaks over stdin and stdout as a Streamable HTTP server: each POST carries one JSON-RPC
 * message.
 */
export function createStdioForward({ supervisor, sessions, shared }: StdioForwardOptions): Forward {
  /** Set when a modern server refuses `initialize`, so that it isn't asked again. */
  let modernAlone = false;

  function post(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, message: Message): void {
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

  function begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, request: Request): void {
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

  function inSession(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, message: Message, id: string): void {
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

const idTextOf = (message: Message | null): string => (message?.kind === 'request' ? message.idText : 'null');

function gone(message: Message): (text: string) => string {
  return (text) => errorText(idTextOf(message), { code: ERROR.process, message: text });
}

function accepted(stream: ServerHttp2Stream): void {
  if (isOpen(stream)) stream.respond({ ':status': 202 }, { endStream: true });
}

function noSession(stream: ServerHttp2Stream, message: Message | null): void {
  sendJson(
    stream,
    404,
    errorText(idTextOf(message), { code: ERROR.sessionNotFound, message: 'Session not found: begin with initialize' }),
  );
}

function sendRefusal(stream: ServerHttp2Stream, message: Message, { status, code, text, data }: Refusal): void {
  sendJson(stream, status, errorText(idTextOf(message), { code, message: text, data }));
}
