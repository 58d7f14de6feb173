import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Forward } from '../forward.ts';
import { breakOff, refuse, sendJson } from '../own-reply.ts';
import { takeWhole } from '../request-body.ts';
import { MESSAGE_BYTES_MAX } from './child-process.ts';
import { errorText, INVALID_REQUEST, PARSE_ERROR, parseMessage, PROCESS_GONE, type JsonObject, type Message } from './json-rpc.ts';
import type { Running, Supervisor } from './supervisor.ts';

/** Notifications of one client about itself. The server has one client, which is this proxy, and takes them for this proxy's. */
const OF_ONE_CLIENT: ReadonlySet<string> = new Set([
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
]);

/** What a client that does not read may leave waiting in events before more are dropped. */
const EVENTS_BYTES_MAX = 256 * 1024;

/** Serves an MCP server that speaks over standard input and output as one that is reached by HTTP: one JSON-RPC message a request. */
export function createStdioForward(server: Supervisor): Forward {
  return (stream, headers, rest) => {
    if (rest !== '' && rest !== '/' && rest[0] !== '?') return refuse(stream, 'unknown_service');
    // There is no stream of a client's own to listen to, and no session to delete.
    if (headers[':method'] !== 'POST') return sendJson(stream, 405, errorText(null, INVALID_REQUEST, 'POST one JSON-RPC message'), { allow: 'POST' });
    takeWhole(stream, MESSAGE_BYTES_MAX, (body) => {
      if (body === null) return sendJson(stream, 413, errorText(null, INVALID_REQUEST, `a message has at most ${MESSAGE_BYTES_MAX} bytes`));
      const message = parseMessage(body.toString('utf8'));
      if (message === undefined) return sendJson(stream, 400, errorText(null, PARSE_ERROR, 'Parse error'));
      if (message === null) return sendJson(stream, 400, errorText(null, INVALID_REQUEST, 'Invalid Request'));
      void server.running().then((running) => answer(stream, headers, message, running));
    });
  };
}

function answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, message: Message, running: Running | null): void {
  if (stream.destroyed || stream.aborted) return;
  const gone = (text: string) => errorText(message.kind === 'request' ? message.id : null, PROCESS_GONE, text);
  if (running === null) return refuse(stream, 'upstream_unreachable', gone);
  const { session, initialized } = running;
  if (message.kind !== 'request') {
    if (message.kind === 'notification' && !OF_ONE_CLIENT.has(message.method)) session.notify(message.all);
    stream.respond({ ':status': 202 }, { endStream: true });
    return;
  }
  const { id, method, all } = message;
  const send = (response: JsonObject) => JSON.stringify({ ...response, id });
  if (method === 'initialize' && initialized !== null) return sendJson(stream, 200, send({ jsonrpc: '2.0', result: initialized }));

  const streams = headers.accept?.includes('text/event-stream') ?? false;
  const cancel = session.ask(all, {
    notification(notification) {
      if (!streams || stream.destroyed || stream.writableLength > EVENTS_BYTES_MAX) return;
      if (!stream.headersSent) stream.respond({ ':status': 200, 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform' });
      stream.write(event(JSON.stringify(notification)));
    },
    response(response) {
      if (stream.destroyed) return;
      if (stream.headersSent) stream.end(event(send(response)));
      else sendJson(stream, 200, send(response));
    },
    broken() {
      if (stream.headersSent) breakOff(stream);
      else refuse(stream, 'upstream_broken', gone);
    },
  });
  if (cancel === null) return refuse(stream, 'upstream_unreachable', gone);
  // Closing the stream is how a client cancels.
  stream.on('aborted', cancel);
  stream.on('close', cancel);
}

function event(text: string): string {
  return `event: message\ndata: ${text}\n\n`;
}
