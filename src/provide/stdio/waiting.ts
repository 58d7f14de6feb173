import type { Message } from './json-rpc.ts';

/** Messages of a server that wait for a stream of its client. */
export interface Waiting {
  /** False where what must not be lost would be more than there is room for. */
  put(message: Message): boolean;
  /** The server's requests, in their order. */
  takeRequests(): readonly string[];
  takeAll(): readonly string[];
}

interface WaitingOptions {
  /** Characters of notifications. The oldest ones make room for new ones. */
  readonly notificationsMax: number;
  /** Characters of requests and responses. */
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
