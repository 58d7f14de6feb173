import { setTimeout as pause } from 'node:timers/promises';
import { type RequestMessage, UpstreamFailure } from '#wire';
import { readReply, type Received, type Send, type UpstreamExchange, type UpstreamReply } from '#gateway';
import { createMailbox, type LATE } from '../../../turn/mailbox.ts';
import { createStreamPosition } from '../../stream-position.ts';
import { toLegacyRequest } from './request-text.ts';
import type { UpstreamSession } from './upstream-session.ts';

/**
 * One request in a legacy session, from its POST to its response. It may outlive the call that made it, and is to be
 * ended by `cancel` or `over`.
 */
export interface SessionCall {
  /** Its id, and its progress token, in the session. */
  readonly id: number;
  readonly session: UpstreamSession;
  /** HTTP status of the server's reply; null before there is one. */
  readonly status: number | null;
  /** The server may ask its client while it runs. */
  readonly canBeAsked: boolean;
  /**
   * The server's next message; null when it ended without a response, LATE when none came within `waitMs`. Throws
   * UpstreamFailure.
   */
  next(waitMs?: number): Promise<Received | null | typeof LATE>;
  /** Takes a message of the session's own stream that belongs to this call. */
  push(received: Received): void;
  /** Nobody wants the response any more: tells the server, and ends it. Without effect on one that has ended. */
  cancel(reason: Error): void;
  /** The response is here, or will never be. */
  over(): void;
}

interface SessionCallOptions {
  readonly session: UpstreamSession;
  readonly send: Send;
  readonly message: RequestMessage;
  readonly canBeAsked: boolean;
  /** `next` throws SessionLost where the server does not know the session. */
  readonly mayBeLost: boolean;
  readonly bytesMax: number;
}

/** The server does not know the session any more: it has not begun with the request. */
export class SessionLost extends UpstreamFailure {
  constructor(status: number) {
    super('the provider lost the session', { status, retryable: true, blame: 'provider', unsent: true });
  }
}

/** Messages of the session's own stream that wait to be read. */
const PUSHED_BOUNDS = { itemsMax: 256, charsMax: 4 * 1024 * 1024 } as const;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 60_000;
/** How often in a row a stream is asked for again without an event. */
const FRUITLESS_MAX = 5;

export function startSessionCall({
  session,
  send,
  message,
  canBeAsked,
  mayBeLost,
  bytesMax,
}: SessionCallOptions): SessionCall {
  const id = session.nextId();
  const leave = session.enter();
  // A client that is asked may take its time.
  let exchange: UpstreamExchange = session.post(
    toLegacyRequest(message, id),
    send,
    canBeAsked ? { patient: true } : {},
  );
  let reply: UpstreamReply | null = null;
  let status: number | null = null;
  const over = new AbortController();
  const box = createMailbox<Received>(PUSHED_BOUNDS);

  /** A server that keeps its events may end the stream, and go on with it in another. */
  async function read(): Promise<void> {
    const position = createStreamPosition(RETRY_MS_MIN, RETRY_MS_MAX);
    reply = await exchange.head;
    ({ status } = reply);
    if (mayBeLost && isLost(session, status, null)) throw new SessionLost(status);
    for (let fruitless = 0; fruitless < FRUITLESS_MAX; fruitless++) {
      for await (const received of readReply(reply, bytesMax)) {
        if (mayBeLost && isLost(session, status, received)) throw new SessionLost(status);
        fruitless = 0;
        position.read(received);
        if (received.message !== null) await box.put(received);
      }
      const { lastEventId, retryMs } = position;
      if (lastEventId === null || over.signal.aborted) return;
      await pause(retryMs, undefined, { signal: over.signal });
      exchange = session.resume(lastEventId, send);
      reply = await exchange.head;
      if (reply.status !== 200) return;
    }
  }
  read().then(box.end, box.fail);

  const end = () => {
    over.abort();
    box.end();
    unregister();
    leave();
  };
  const call: SessionCall = {
    id,
    session,
    get status() {
      return status;
    },
    canBeAsked,
    next: box.take,
    push: (received) => box.offer(received, received.message.text.length),
    cancel(reason) {
      if (over.signal.aborted) return;
      session.cancel(id);
      box.fail(reason);
      end();
      exchange.abort(reason);
    },
    over() {
      if (over.signal.aborted) return;
      end();
      reply?.discard();
    },
  };
  const unregister = session.register(call);
  return call;
}

/** Tells a lost session by the status, or where servers say it less clearly, by the words of the error. */
function isLost(
  { upstreamId }: UpstreamSession,
  status: number,
  received: { readonly message: Received['message'] | null } | null,
): boolean {
  if (upstreamId === null) return false;
  if (received === null) return status === 404;
  return (
    status === 400 && received.message?.kind === 'response' && /session/i.test(received.message.error?.message ?? '')
  );
}
