import { useQuery, useQueryClient } from '@tanstack/react-query';
import { BOOT } from '../app/boot.ts';
import { ApiError } from './api-error.ts';
import { call } from './request.ts';

/** The account that is signed in in this browser. */
export interface Session {
  /** CAIP-10, or the gateway's own name of an account. */
  readonly account: string;
  readonly rights: readonly string[] | string;
  readonly expires_at: string;
}

/**
 * A visitor who never signed in is not asked about: most are, and each would cost a request that says no. The cookie
 * itself cannot be seen from here.
 */
const MARK = 'tollgate.signed-in';

const SESSION_KEY = ['session'] as const;

/**
 * The session of this browser, or null. `loading` is true until that is known. Call `changed` after signing in or out:
 * with the new session, or null.
 */
export function useSession(): {
  readonly session: Session | null;
  readonly loading: boolean;
  readonly changed: (session: Session | null) => void;
} {
  const queries = useQueryClient();
  const asked = BOOT.sessions && localStorage.getItem(MARK) !== null;
  const { data: found = null, isPending } = useQuery({ queryKey: SESSION_KEY, queryFn: findSession, enabled: asked });
  return {
    session: found,
    loading: asked && isPending,
    changed(session) {
      if (session) localStorage.setItem(MARK, '1');
      else localStorage.removeItem(MARK);
      // What was shown belongs to somebody else now.
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
      queries.setQueryData(SESSION_KEY, session);
    },
  };
}

async function findSession(): Promise<Session | null> {
  try {
    return await call<Session>('/api/v1/auth/session');
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) throw error;
    localStorage.removeItem(MARK);
    return null;
  }
}
