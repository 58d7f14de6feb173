import { hash } from 'node:crypto';
import type { RequestId } from '#wire';
import type { SessionStore } from '#tasks';

/** A session of a client, of any kind. */
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
  /** Whether a cancellation is noted. False if the database cannot be read. */
  isNoted(session: Pick<OfSession, 'id'>, request: RequestId): Promise<boolean>;
  /**
   * Calls `cancel` at most once, about a second after another gateway has noted the cancellation of this request. The
   * returned function ends this.
   */
  watch(session: string, request: RequestId, cancel: () => void): () => void;
  /** Removes old notes. */
  sweep(): Promise<void>;
  close(): void;
}

interface CancelNotesDeps {
  readonly store: Pick<SessionStore, 'put' | 'get' | 'delete' | 'countOf' | 'sweep' | 'expiriesOf'>;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

interface Watch {
  readonly session: string;
  readonly request: RequestId;
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
/** Most notes of one account. */
const NOTES_MAX = 1_000;
const SWEPT_MAX = 1_000;

const keyOf = (session: string, request: unknown): string =>
  `cancelled ${hash('sha256', JSON.stringify([session, request])).slice(0, 40)}`;

export function createCancelNotes({ store, now, onError }: CancelNotesDeps): CancelNotes {
  const watched = new Set<Watch>();
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
      const byKey = new Map([...watched].map((one) => [keyOf(one.session, one.request), one]));
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
        if ((await store.countOf(account, KIND)) >= NOTES_MAX) return;
        await store.put({ id: keyOf(id, request), account, kind: KIND, state: '', expiresAt: now() + NOTED_MS });
      } catch (error) {
        onError(error);
      }
    },
    isNoted: async ({ id }, request) => (await store.get(keyOf(id, request)).catch(() => null)) !== null,
    watch(session, request, cancel) {
      const one = { session, request, cancel, expiresFrom: now() + NOTED_MS - CLOCKS_MS };
      watched.add(one);
      timer ??= setInterval(() => void poll(), POLL_MS).unref();
      return () => void watched.delete(one);
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
