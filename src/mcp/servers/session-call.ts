import { setTimeout as pause } from 'node:timers/promises';
import { type RequestMessage, readReply, type Received } from '#json-rpc';
import { UpstreamFailure } from '#wire';
import type { Send, UpstreamExchange, UpstreamReply } from '#call';
import { createMailbox, type LATE } from '../request/waiting.ts';
import { createStreamPosition } from './resumable-stream.ts';
import { toLegacyRequest } from '../request/modern-to-legacy-text.ts';
import type { RegisteredCall, UpstreamSession } from './upstream-session.ts';

/**
 * One request in a legacy session, from its POST to its response. It may outlive the call that made it, so it must be
 * ended with `cancel` or `over`.
 */
export interface SessionCall extends RegisteredCall {
  readonly session: UpstreamSession;
  /** HTTP status of the server's reply; null before the reply. */
  readonly status: number | null;
  /**
   * Resolves to the server's next message; to null if the server ended without a response; to LATE if no message came
   * within `waitMs`. Rejects with UpstreamFailure.
   */
  next(waitMs?: number): Promise<Received | null | typeof LATE>;
  /**
   * Tells the server that nobody needs the response any more. If the server takes that, the call ends with `reason`
   * after `graceMs`, unless the response comes before.
   */
  leave(reason: Error, graceMs: number): void;
  /** Tells the server that nobody needs the response any more, and ends the call. No effect if it has already ended. */
  cancel(reason: Error): void;
  /** Ends the call, because the response is here or will never come. */
  over(): void;
}

interface SessionCallOptions {
  readonly session: UpstreamSession;
  readonly send: Send;
  readonly message: RequestMessage;
  readonly canBeAsked: boolean;
  /** `next` throws SessionLost if the server does not know the session. */
  readonly mayBeLost: boolean;
  readonly bytesMax: number;
}

/** The server no longer knows the session, so it has not begun to process the request. */
export class SessionLost extends UpstreamFailure {
  constructor(status: number) {
    super('the provider lost the session', { status, retryable: true, attributedTo: 'provider', unsent: true });
  }
}

/** Bounds for messages of the session's own stream that wait to be read. */
const PUSHED_BOUNDS = { itemsMax: 256, charsMax: 4 * 1024 * 1024 } as const;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 60_000;
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
  // Patient, because a client that is asked may take long.
  let exchange: UpstreamExchange = session.post(
    toLegacyRequest(message, id),
    send,
    canBeAsked ? { patient: true } : {},
  );
  let reply: UpstreamReply | null = null;
  const over = new AbortController();
  const box = createMailbox<Received>(PUSHED_BOUNDS);

  async function read(): Promise<void> {
    const position = createStreamPosition(RETRY_MS_MIN, RETRY_MS_MAX);
    reply = await exchange.head;
    const { status } = reply;
    call.status = status;
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

  let notice: Promise<boolean> | null = null;
  let grace: NodeJS.Timeout | undefined;
  const end = () => {
    clearTimeout(grace);
    over.abort();
    box.end();
    unregister();
    leave();
  };
  const call: SessionCall & { status: number | null } = {
    id,
    session,
    status: null,
    canBeAsked,
    next: box.take,
    push: (received) => box.offer(received, received.message.text.length),
    leave(reason, graceMs) {
      if (over.signal.aborted) return;
      notice ??= session.cancel(id);
      void notice.then((accepted) => {
        if (accepted && !over.signal.aborted) grace ??= setTimeout(() => call.cancel(reason), graceMs);
      });
    },
    cancel(reason) {
      if (over.signal.aborted) return;
      notice ??= session.cancel(id);
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

/** Recognises a lost session by the status, or by the words of the error if the server has another status. */
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
