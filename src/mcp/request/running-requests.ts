import {
  type Answer,
  errorText,
  exactId,
  type NotificationMessage,
  type RequestId,
  type RequestMessage,
  spanAt,
  UpstreamFailure,
} from '#wire';
import type { CancelNotes } from '../sessions/cancel-notes.ts';
import { ERROR } from '../wire/revisions.ts';

/**
 * The running requests of legacy clients, by session and id, so that they can be cancelled. `T` is data that the caller
 * attaches to each.
 */
export interface RunningRequests<T = null> {
  /** `graceMs`: how long a cancelled request may still be answered; such an answer is paid. Default: 0. */
  start(session: string, id: RequestId, of: T, graceMs?: number): Running;
  /** The request that runs under an id. Ids are those of `exactId`. If two run under the same id, the later one. */
  find(session: string, id: unknown): Cancellable<T> | undefined;
  readonly count: number;
}

interface Cancellable<T> {
  readonly of: T;
  cancel(reason?: string): void;
}

export interface Running {
  /** Aborts when the client cancels. From then on nothing is written to the client. */
  readonly unwanted: AbortSignal;
  /** Aborts when the grace time of a cancelled request is over. */
  readonly cancelled: AbortSignal;
  end(): void;
}

/** `cancels`: tells of cancellations that reach another gateway. Default: none. */
export function createRunningRequests<T = null>(cancels?: Pick<CancelNotes, 'watch'>): RunningRequests<T> {
  const running = new Map<string, Cancellable<T>>();
  // The ids 1 and "1" are different.
  const keyOf = (session: string, id: unknown) => `${session} ${JSON.stringify(id)}`;
  return {
    get count() {
      return running.size;
    },
    start(session, id, of, graceMs = 0) {
      const key = keyOf(session, id);
      const unwanted = new AbortController();
      const cancelled = new AbortController();
      let grace: NodeJS.Timeout | undefined;
      const request: Cancellable<T> = {
        of,
        cancel(reason) {
          const why = new Error(`the client cancelled the request${reason === undefined ? '' : `: ${reason}`}`);
          unwanted.abort(why);
          if (graceMs === 0) cancelled.abort(why);
          else grace ??= setTimeout(() => cancelled.abort(why), graceMs);
        },
      };
      running.set(key, request);
      const unwatch = cancels?.watch(session, id, () => request.cancel());
      return {
        unwanted: unwanted.signal,
        cancelled: cancelled.signal,
        end() {
          clearTimeout(grace);
          unwatch?.();
          if (running.get(key) === request) running.delete(key);
        },
      };
    },
    find: (session, id) => running.get(keyOf(session, id)),
  };
}

/**
 * Whether a request that ended with `error` instead of a response is free, and no failure of its provider: the client
 * has cancelled it, and a server need not answer it any more. An answer that is too large is still paid.
 */
export const endsCancelled = ({ unwanted }: Running, error: unknown): boolean =>
  unwanted.aborted && !(error instanceof UpstreamFailure && error.tooLarge);

/** The id that `notifications/cancelled` has, made comparable by `exactId`. */
export function cancelledId({ text, params }: NotificationMessage): unknown {
  const id = params?.['requestId'];
  if (typeof id !== 'number') return id;
  const { start, end } = spanAt(text, ['params', 'requestId'])!;
  return exactId({ id, idText: text.slice(start, end) });
}

/** Runs a request with a signal that aborts when it is cancelled. Refuses a request whose id is already running. */
export async function runCancellable<T>(
  requests: RunningRequests<T>,
  session: string,
  of: T,
  request: RequestMessage,
  answer: Answer,
  work: (cancelled: AbortSignal) => Promise<void>,
): Promise<void> {
  const id = exactId(request);
  if (requests.find(session, id)) return answer.end(errorText(request.idText, ID_IN_USE), 200);
  const running = requests.start(session, id, of);
  try {
    await work(running.cancelled);
  } finally {
    running.end();
  }
}

export const ID_IN_USE = { code: ERROR.invalidRequest, message: 'A request with this id is still running' } as const;
