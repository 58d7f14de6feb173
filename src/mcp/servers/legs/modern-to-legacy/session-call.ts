import { setTimeout as pause } from 'node:timers/promises';
import { type RequestMessage, UpstreamFailure } from '#wire';
import { readReply, type Received, type Send, type UpstreamExchange, type UpstreamReply } from '#gateway';
import { createMailbox, type LATE } from '../../../turn/mailbox.ts';
import { toLegacyRequest } from './request-text.ts';
import type { UpstreamSession } from './upstream-session.ts';

/**
 * One request in a legacy session, from its POST to its response. It may outlive the call that made it: whoever has
 * it ends it.
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
   * What the server says next; null when it ended without a response, LATE when it said nothing within `waitMs`.
   * Throws UpstreamFailure.
   */
  next(waitMs?: number): Promise<Received | null | typeof LATE>;
  /** What the server said elsewhere and belongs to this call. */
  push(received: Received): void;
  /** Nobody wants the response any more: tells the server, and ends it. Without effect on one that has ended. */
  cancel(reason: Error): void;
  /** The response is here, or will never be. */
  over(): void;
}

export interface SessionCallOptions {
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

/** What may wait of what was said elsewhere. */
const PUSHED_MAX = 256;
/** Characters of it. */
const PUSHED_CHARS_MAX = 4 * 1024 * 1024;
/** Before a stream that ended without a response is asked for again, unless the server says how long. */
const RETRY_MS = 1_000;
/** A server that says less would keep the gateway busy with nothing. */
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 60_000;
/** How often in a row a stream is asked for again without hearing anything. */
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
  // Whoever is asked may take his time.
  let exchange: UpstreamExchange = session.post(
    toLegacyRequest(message, id),
    send,
    canBeAsked ? { patient: true } : {},
  );
  let reply: UpstreamReply | null = null;
  let status: number | null = null;
  const over = new AbortController();
  const box = createMailbox<Received>();
  let pushed = 0;

  /** A server that keeps its events may end the stream, and go on with it in another. */
  async function read(): Promise<void> {
    let lastEventId: string | null = null;
    let retryMs = RETRY_MS;
    reply = await exchange.head;
    ({ status } = reply);
    if (mayBeLost && isLost(session, status, null)) throw new SessionLost(status);
    for (let fruitless = 0; fruitless < FRUITLESS_MAX; fruitless++) {
      for await (const received of readReply(reply, bytesMax)) {
        if (mayBeLost && isLost(session, status, received)) throw new SessionLost(status);
        fruitless = 0;
        if (received.eventId !== null) lastEventId = received.eventId;
        if (received.message === null)
          retryMs = Math.min(Math.max(received.retryMs ?? retryMs, RETRY_MS_MIN), RETRY_MS_MAX);
        else await box.put(received);
      }
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
    push(received) {
      const { length } = received.message.text;
      if (box.length >= PUSHED_MAX || pushed + length > PUSHED_CHARS_MAX) return;
      pushed += length;
      void box.put(received).then(() => void (pushed -= length));
    },
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

/** By its status, or where servers say it less clearly, by the words of its error. */
function isLost(
  { id }: UpstreamSession,
  status: number,
  received: { readonly message: Received['message'] | null } | null,
): boolean {
  if (id === null) return false;
  if (received === null) return status === 404;
  return (
    status === 400 && received.message?.kind === 'response' && /session/i.test(received.message.error?.message ?? '')
  );
}
