import type { ServerHttp2Stream } from 'node:http2';
import { errorText } from '#json-rpc/message';
import type { ProxyFailure } from '#network/tunnel';
import { breakOff, refuse, sendJson } from '../call-stream.ts';
import { ERROR } from './json-rpc.ts';

/**
 * The reply to one request of a client: the response as JSON, or an event stream if other messages come before the
 * response.
 */
export interface StdioReply {
  /** Whether messages can be sent before the response. */
  takesEvents(): boolean;
  isOpen(): boolean;
  /** Bytes that the client has not read yet. */
  waiting(): number;
  event(text: string): void;
  /** Sends the response and ends the reply. `status` is used only if the reply has not begun. */
  response(text: string, status?: number): void;
  /** Ends the reply without a response, because the client cancelled the request. */
  end(): void;
  /** Ends the reply with an error, because there will be no response. */
  broken(failure: ProxyFailure): void;
  whenOver(then: () => void): void;
}

interface ReplyOptions {
  readonly stream: ServerHttp2Stream;
  readonly accept: string | undefined;
  readonly id: string;
  readonly headers?: () => Readonly<Record<string, string>>;
}

/** Notifications are dropped while a client has more unread bytes than this. */
export const EVENTS_BYTES_MAX = 256 * 1024;

export function acceptsEvents(accept: string | undefined): boolean {
  return accept?.includes('text/event-stream') ?? false;
}

export function isOpen(stream: ServerHttp2Stream): boolean {
  return !stream.destroyed && !stream.closed && !stream.aborted && !stream.writableEnded;
}

/** Begins an event stream. Does nothing if the stream is closed or the reply has begun. */
export function beginEvents(stream: ServerHttp2Stream, headers: Readonly<Record<string, string>> = {}): void {
  if (!isOpen(stream) || stream.headersSent) return;
  stream.respond({
    ...headers,
    ':status': 200,
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
  });
}

export function eventOf(text: string): string {
  return `event: message\ndata: ${text}\n\n`;
}

export function createReply({ stream, accept, id, headers = () => ({}) }: ReplyOptions): StdioReply {
  const streams = acceptsEvents(accept);
  return {
    isOpen: () => isOpen(stream),
    takesEvents: () => streams && isOpen(stream),
    waiting: () => stream.writableLength,
    event(text) {
      if (!streams || !isOpen(stream)) return;
      if (!stream.headersSent) beginEvents(stream, headers());
      stream.write(eventOf(text));
    },
    response(text, status = 200) {
      if (!isOpen(stream)) return;
      if (stream.headersSent) stream.end(eventOf(text));
      else sendJson(stream, status, text, headers());
    },
    end() {
      if (!isOpen(stream)) return;
      if (!streams)
        return sendJson(stream, 200, errorText(id, { code: ERROR.process, message: 'cancelled' }), headers());
      if (!stream.headersSent) beginEvents(stream, headers());
      stream.end();
    },
    broken(failure) {
      if (stream.headersSent) breakOff(stream);
      else refuse(stream, failure, (text) => errorText(id, { code: ERROR.process, message: text }));
    },
    whenOver: (then) => void stream.on('close', then),
  };
}
