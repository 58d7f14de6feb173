import type { Message } from './json-rpc.ts';

/** The queue of a server's messages until the client opens a stream. */
export interface Waiting {
  /** Returns false if requests and responses, which must not be lost, exceed the limit. */
  put(message: Message): boolean;
  /** Removes and returns the server's requests, in order. */
  takeRequests(): readonly string[];
  takeAll(): readonly string[];
}

interface WaitingOptions {
  /** The most characters of notifications. Above it the oldest ones are dropped. */
  readonly notificationsMax: number;
  /** The most characters of requests and responses. */
  readonly restMax: number;
}

const mayBeLost = ({ kind }: Message): boolean => kind === 'notification';

export function createWaiting({ notificationsMax, restMax }: WaitingOptions): Waiting {
  let messages: Message[] = [];
  let notifications = 0;
  let rest = 0;

  function put(message: Message): boolean {
    const { length } = message.text;
    if (!mayBeLost(message)) {
      if (rest + length > restMax) return false;
      rest += length;
      messages.push(message);
      return true;
    }
    notifications += length;
    messages.push(message);
    while (notifications > notificationsMax) {
      const [lost] = messages.splice(messages.findIndex(mayBeLost), 1);
      notifications -= lost!.text.length;
    }
    return true;
  }

  function take(wanted: (message: Message) => boolean): readonly string[] {
    const before = messages;
    messages = [];
    notifications = 0;
    rest = 0;
    for (const message of before) if (!wanted(message)) put(message);
    return before.filter(wanted).map(({ text }) => text);
  }

  return {
    put,
    takeRequests: () => take(({ kind }) => kind === 'request'),
    takeAll: () => take(() => true),
  };
}
