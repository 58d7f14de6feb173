import { hash } from 'node:crypto';
import { RecentMap, TransientMap } from '#maps';
import type { ClientAnswer } from '#http';
import { errorText, exactId, type NotificationMessage, type RequestId, type RequestMessage } from '#json-rpc';
import { spanAt, UpstreamFailure } from '#wire';
import type { SessionStore } from './session-store.ts';
import { ERROR } from '../wire/revisions.ts';

/**
 * The running requests of legacy clients, by session and id, so that they can be cancelled. `T` is data that the caller
 * attaches to each.
 */
export interface RunningRequests<T = null> {
  /** `graceMs`: how long a cancelled request may still be answered; such an answer is paid. Default: 0. */
  start(session: string, id: RequestId, request: T, graceMs?: number): RunningRequest;
  /** The request that runs under an id. Ids are those of `exactId`. If two run under the same id, the later one. */
  find(session: string, id: unknown): Cancellable<T> | undefined;
  readonly count: number;
}

interface Cancellable<T> {
  readonly request: T;
  cancel(reason?: string): void;
}

export interface RunningRequest {
  /** Aborts when the client cancels. From then on nothing is written to the client. */
  readonly unwanted: AbortSignal;
  /** Aborts when the grace time of a cancelled request is over. */
  readonly cancelled: AbortSignal;
  /** Whether its cancellation has reached another gateway. False if the database cannot be read. */
  isNoted(): Promise<boolean>;
  end(): void;
}

/** `cancels`: tells of cancellations that reach another gateway. Default: none. */
export function createRunningRequests<T = null>(cancels?: Pick<CancelNotes, 'watch'>): RunningRequests<T> {
  const running = new TransientMap<string, Cancellable<T>>();
  // The ids 1 and "1" are different.
  const keyOf = (session: string, id: unknown) => `${session} ${JSON.stringify(id)}`;
  return {
    get count() {
      return running.size;
    },
    start(session, id, item, graceMs = 0) {
      const key = keyOf(session, id);
      const unwanted = new AbortController();
      const cancelled = new AbortController();
      let grace: NodeJS.Timeout | undefined;
      const request: Cancellable<T> = {
        request: item,
        cancel(reason) {
          const why = new Error(`the client cancelled the request${reason === undefined ? '' : `: ${reason}`}`);
          unwanted.abort(why);
          if (graceMs === 0) cancelled.abort(why);
          else grace ??= setTimeout(() => cancelled.abort(why), graceMs);
        },
      };
      running.set(key, request);
      const watched = cancels?.watch(session, id, () => request.cancel());
      return {
        unwanted: unwanted.signal,
        cancelled: cancelled.signal,
        isNoted: async () => watched !== undefined && (await watched.isNoted()),
        end() {
          clearTimeout(grace);
          watched?.end();
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
export const endsCancelled = ({ unwanted }: RunningRequest, error: unknown): boolean =>
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
  item: T,
  request: RequestMessage,
  answer: ClientAnswer,
  work: (cancelled: AbortSignal) => Promise<void>,
): Promise<void> {
  const id = exactId(request);
  if (requests.find(session, id)) return answer.end(errorText(request.idText, ID_IN_USE), 200);
  const running = requests.start(session, id, item);
  try {
    await work(running.cancelled);
  } finally {
    running.end();
  }
}

export const ID_IN_USE = { code: ERROR.invalidRequest, message: 'A request with this id is still running' } as const;

interface OfSession {
  readonly id: string;
  readonly account: string;
}

/**
 * Notes of cancellations that reach another gateway than the one at which the request runs. They are in the database,
 * and the gateway looks for those of its running requests. Ids of requests are those of `exactId`.
 */
export interface CancelNotes {
  /** Notes that the client has cancelled a request that does not run here. Never rejects. */
  note(session: OfSession, request: unknown): Promise<void>;
  /**
   * Calls `cancel` at most once, about a second after another gateway has noted the cancellation of this request,
   * which begins now: notes from before are about an older request with the same id.
   */
  watch(session: string, request: RequestId, cancel: () => void): Pick<RunningRequest, 'isNoted' | 'end'>;
  sweep(): Promise<void>;
  close(): void;
}

interface CancelNotesDeps {
  readonly store: Pick<SessionStore, 'put' | 'get' | 'delete' | 'countOf' | 'sweep' | 'expiriesOf'>;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

interface Watch {
  readonly name: string;
  readonly cancel: () => void;
  /** A note that expires earlier is about an older request with the same id. */
  readonly expiresFrom: number;
}

/** The notes are rows of the store of sessions, of their own kind. */
const KIND = 'mcp cancelled';
/** Long enough for a gateway that cannot read the database for a while. */
const NOTED_MS = 60_000;
const POLL_MS = 1_000;
/** How much the clocks of two gateways may differ. */
const CLOCKS_MS = 5_000;
const NOTES_MAX = 1_000;
const SWEPT_MAX = 1_000;

const nameOf = (session: string, request: unknown): string => JSON.stringify([session, request]);
const keyOf = (name: string): string => `cancelled ${hash('sha256', name).slice(0, 40)}`;

export function createCancelNotes({ store, now, onError }: CancelNotesDeps): CancelNotes {
  const watched = new TransientMap<Watch, null>();
  /** When the latest notes of this gateway expire, by name. Its own clock needs no margin. */
  const ownNotes = new RecentMap<number>(NOTES_MAX);
  let timer: NodeJS.Timeout | null = null;
  let isLooking = false;

  const stop = () => {
    if (timer !== null) clearInterval(timer);
    timer = null;
  };

  async function poll(): Promise<void> {
    // The timer goes on through short pauses between requests.
    if (watched.size === 0) return stop();
    if (isLooking) return;
    isLooking = true;
    try {
      const byKey = new Map([...watched.keys()].map((one) => [keyOf(one.name), one]));
      for (const [key, expiresAt] of await store.expiriesOf([...byKey.keys()])) {
        const one = byKey.get(key)!;
        if (expiresAt < one.expiresFrom || !watched.delete(one)) continue;
        one.cancel();
        await store.delete(key);
      }
    } catch (error) {
      onError(error);
    }
    isLooking = false;
  }

  return {
    async note({ id, account }, request) {
      try {
        if ((await store.countOf({ account, within: null }, KIND)).together >= NOTES_MAX) return;
        const [name, expiresAt] = [nameOf(id, request), now() + NOTED_MS];
        ownNotes.set(name, expiresAt);
        await store.put({ id: keyOf(name), account, kind: KIND, state: '', expiresAt });
      } catch (error) {
        onError(error);
      }
    },
    watch(session, request, cancel) {
      const name = nameOf(session, request);
      const expiresFrom = Math.max(now() + NOTED_MS - CLOCKS_MS, (ownNotes.get(name) ?? 0) + 1);
      const one = { name, cancel, expiresFrom };
      watched.set(one, null);
      timer ??= setInterval(() => void poll(), POLL_MS).unref();
      return {
        isNoted: async () => ((await store.get(keyOf(name)).catch(() => null))?.expiresAt ?? 0) >= expiresFrom,
        end: () => void watched.delete(one),
      };
    },
    async sweep() {
      await store.sweep(KIND, SWEPT_MAX);
    },
    close() {
      watched.clear();
      stop();
    },
  };
}
