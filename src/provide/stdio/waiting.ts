import type { Message } from './json-rpc.ts';

/** The queue of a server's messages until the client opens a stream. */
export interface Waiting {
  /** Returns false if requests, which must not be lost, exceed their limit. */
  put(message: Message): boolean;
  /** Removes and returns the server's requests, in order. */
  takeRequests(): readonly string[];
  takeAll(): readonly string[];
}

/**
 * The most characters of the messages of each kind. Above it the oldest notifications and responses are dropped. The
 * calls of these responses have ended without them, and a client that closed a call often never opens a stream.
 */
type WaitingLimits = Readonly<Record<Message['kind'], number>>;

export function createWaiting(limits: WaitingLimits): Waiting {
  let messages: Message[] = [];
  let held = { request: 0, response: 0, notification: 0 };

  function put(message: Message): boolean {
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

  function take(wanted: (message: Message) => boolean): readonly string[] {
    const before = messages;
    messages = [];
    held = { request: 0, response: 0, notification: 0 };
    for (const message of before) if (!wanted(message)) put(message);
    return before.filter(wanted).map(({ text }) => text);
  }

  return {
    put,
    takeRequests: () => take(({ kind }) => kind === 'request'),
    takeAll: () => take(() => true),
  };
}
