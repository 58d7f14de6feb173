import type { ServerHttp2Stream } from 'node:http2';
import { breakOff } from '../call-stream.ts';
import { MESSAGE_BYTES_MAX } from './child-process.ts';
import type { RpcMessage } from './json-rpc.ts';
import { beginEvents, eventOf, EVENTS_BYTES_MAX, isOpen } from './reply.ts';

/** The most bytes of requests and responses that a client may leave unread. */
const UNREAD_BYTES_MAX = 2 * MESSAGE_BYTES_MAX;

/** The stream for messages that belong to none of the client's requests, and the queue of such messages. */
interface ClientStream {
  isAttached(): boolean;
  /** Returns false if the client has a stream already. `closed` is called when this one closes. */
  attach(stream: ServerHttp2Stream, closed: () => void): boolean;
  /** Sends a message, or queues it for the next stream. */
  send(message: RpcMessage): void;
  /** Removes the server's requests from the queue, to send them on another stream. */
  takeRequests(): readonly string[];
  end(): void;
  breakOff(): void;
}

/** `over` is called if the client doesn't read messages that must not be lost. */
export function createClientStream(over: (why: string) => void): ClientStream {
  const waiting = createWaiting({
    request: MESSAGE_BYTES_MAX,
    response: MESSAGE_BYTES_MAX,
    notification: EVENTS_BYTES_MAX,
  });
  let attached: ServerHttp2Stream | null = null;

  function detach(): ServerHttp2Stream | null {
    const stream = attached;
    attached = null;
    return stream;
  }

  return {
    isAttached: () => attached !== null,
    attach(stream, closed) {
      if (attached) return false;
      attached = stream;
      stream.on('close', () => {
        if (attached === stream) attached = null;
        closed();
      });
      beginEvents(stream);
      for (const text of waiting.takeAll()) stream.write(eventOf(text));
      return true;
    },
    send(message) {
      const stream = attached;
      if (stream && isOpen(stream))
        writeWithin(message, stream.writableLength, (text) => stream.write(eventOf(text)), over);
      else if (!waiting.put(message)) over('the client does not accept the request of the tool');
    },
    takeRequests: waiting.takeRequests,
    end() {
      const stream = detach();
      if (stream && isOpen(stream)) stream.end();
    },
    breakOff() {
      const stream = detach();
      if (stream) breakOff(stream);
    },
  };
}

/**
 * Writes a message to a client that has `unread` bytes. Above EVENTS_BYTES_MAX a notification is dropped. Above
 * UNREAD_BYTES_MAX `over` is called for any other message.
 */
export function writeWithin(
  { kind, text }: RpcMessage,
  unread: number,
  write: (text: string) => void,
  over: (why: string) => void,
): void {
  if (kind === 'notification' && unread > EVENTS_BYTES_MAX) return;
  if (unread > UNREAD_BYTES_MAX) return over('the client does not read');
  write(text);
}

/** The queue of a server's messages until the client opens a stream. */
interface MessageQueue {
  /** Returns false if requests, which must not be lost, exceed their limit. */
  put(message: RpcMessage): boolean;
  takeRequests(): readonly string[];
  takeAll(): readonly string[];
}

/**
 * The most characters of the messages of each kind. Above it the oldest notifications and responses are dropped. The
 * calls of these responses have ended without them, and a client that closed a call often never opens a stream.
 */
type WaitingLimits = Readonly<Record<RpcMessage['kind'], number>>;

function createWaiting(limits: WaitingLimits): MessageQueue {
  let messages: RpcMessage[] = [];
  let held = { request: 0, response: 0, notification: 0 };

  function put(message: RpcMessage): boolean {
    const { kind, text } = message;
    if (kind === 'request' && held.request + text.length > limits.request) return false;
    held[kind] += text.length;
    messages.push(message);
    while (held[kind] > limits[kind]) {
      const [lost] = messages.splice(
        messages.findIndex((one) => one.kind === kind),
        1,
      );
      held[kind] -= lost!.text.length;
    }
    return true;
  }

  function take(matches: (message: RpcMessage) => boolean): readonly string[] {
    const before = messages;
    messages = [];
    held = { request: 0, response: 0, notification: 0 };
    for (const message of before) if (!matches(message)) put(message);
    return before.filter(matches).map(({ text }) => text);
  }

  return {
    put,
    takeRequests: () => take(({ kind }) => kind === 'request'),
    takeAll: () => take(() => true),
  };
}
