import { hash } from 'node:crypto';
import type { RequestId } from '#wire';
import type { LegacySession } from '../../turn/session.ts';

/**
 * Ids of calls that ended here without the server's answer. It may still come, and servers send it to any request
 * under the same id: a client would get the work of a call that it left for the price of another, or for nothing.
 */
interface UnansweredCalls {
  add(session: LegacySession, id: RequestId): void;
  /** Why a request with this id is not sent; null where nothing is in its way. */
  fault(session: LegacySession, id: RequestId): string | null;
}

/** Unanswered calls of one session. */
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
        return 'A call with this id was made before and has no answer yet: each request of a session has an id of its own';
      return keys.size >= UNANSWERED_MAX
        ? 'Too many calls of this session were left without an answer: open another one'
        : null;
    },
  };
}

/** 1 and "1" are two ids. A long id is kept as a digest: it stays for as long as the session. */
function keyOf(id: RequestId): string {
  const text = JSON.stringify(id);
  return text.length <= 128 ? text : hash('sha256', text);
}
