import { type Answer, errorText, type RequestMessage } from '#wire';
import { ERROR } from '../wire/revisions.ts';

/** A request that runs in a session. */
export interface CancellableRequest<T> {
  /** What it was begun with. */
  readonly of: T;
  readonly cancelled: AbortController;
}

/** What runs in sessions, by the ids of the requests, for those that are cancelled. */
export interface CancellableRequests<S extends object, T> {
  /**
   * Runs a request, with a signal that aborts when it is cancelled. One under the id of another that runs is refused.
   */
  run(
    session: S,
    of: T,
    asked: RequestMessage,
    answer: Answer,
    work: (cancelled: AbortSignal) => Promise<void>,
  ): Promise<void>;
  /** `id` is what a client calls a request by. */
  find(session: S, id: unknown): CancellableRequest<T> | undefined;
}

export function createCancellableRequests<S extends object, T>(): CancellableRequests<S, T> {
  const running = new WeakMap<S, Map<string, CancellableRequest<T>>>();
  return {
    async run(session, of, asked, answer, work) {
      const requests = running.get(session) ?? new Map<string, CancellableRequest<T>>();
      running.set(session, requests);
      const key = JSON.stringify(asked.id);
      if (requests.has(key))
        return answer.end(
          errorText(asked.idText, { code: ERROR.invalidRequest, message: 'A request with this id is on its way' }),
          400,
        );
      const cancelled = new AbortController();
      requests.set(key, { of, cancelled });
      try {
        await work(cancelled.signal);
      } finally {
        requests.delete(key);
      }
    },
    find: (session, id) => running.get(session)?.get(JSON.stringify(id)),
  };
}
