import { hash } from 'node:crypto';
import type { RequestId } from '#wire';
import type { LegacySession } from '../../turn/session.ts';

/**
 * Ids of calls that ended here without the server's answer. The answer may still come, and servers send it to any later
 * request with the same id. A client would then get the work of the first call for the price of another, or for
 * nothing.
 */
interface UnansweredCalls {
  add(session: LegacySession, id: RequestId): void;
  /** Says why a request with this id must not be sent; null if it may be sent. */
  fault(session: LegacySession, id: RequestId): string | null;
}

/** Most unanswered calls of one session. */
const UNANSWERED_MAX = 1_000;

export function createUnansweredCalls(): UnansweredCalls {
  const unanswered = new WeakMap<LegacySession, Set<string>>();
  return {
    add(session, id) {
      const keys = unanswered.get(session) ?? new Set<string>();
      unanswered.set(session, keys.add(keyOf(id)));
    },
    fault(session, id) {
      const keys = unanswered.get(session);
      if (!keys) return null;
      if (keys.has(keyOf(id)))
        return 'A call with this id has no answer yet. Use a different id for each request of a session';
      return keys.size >= UNANSWERED_MAX ? 'Too many calls of this session have no answer. Open another session' : null;
    },
  };
}

/** The ids 1 and "1" are different. A long id is stored as a digest, because it is kept as long as the session. */
function keyOf(id: RequestId): string {
  const text = JSON.stringify(id);
  return text.length <= 128 ? text : hash('sha256', text);
}
