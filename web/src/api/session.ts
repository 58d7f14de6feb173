import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { actFor, payBy } from './acting.ts';
import { passIfSignedOut } from './api-error.ts';
import { api, call, type BodyOf, type Schemas } from './client.ts';

/** The answer to a browser: all members but `ways` are null if it isn't signed in. */
type Found = Schemas['Session'];
type Always = 'account' | 'signed_in_by' | 'rights' | 'id' | 'idle_at' | 'expires_at';

/** The account that is signed in to this browser. */
export type Session = Omit<Found, Always> & { readonly [Member in Always]: NonNullable<Found[Member]> };

/**
 * Set while somebody is signed in. Without the mark no session is requested, because most visitors never sign in.
 * Scripts can't see the cookie itself.
 */
const MARK = 'tollgate.signed-in';

const SESSION_KEY = ['session'] as const;
const PATH = '/api/v1/auth/session';

/**
 * The session of this browser, or null. `loading` is true until it is known. `error` is set if the gateway could not be
 * asked. Call `changed` after signing in or out, with the new session or null.
 */
export function useSession(): {
  readonly session: Session | null;
  readonly loading: boolean;
  readonly error: Error | null;
  readonly refetch: () => unknown;
  readonly changed: (session: Session | null) => void;
} {
  const queries = useQueryClient();
  const asked = localStorage.getItem(MARK) !== null;
  const {
    data: found = null,
    isPending,
    error,
    refetch,
  } = useQuery({ queryKey: SESSION_KEY, queryFn: findSession, enabled: asked });
  const changed = useCallback(
    (session: Session | null) => {
      if (session) localStorage.setItem(MARK, '1');
      else localStorage.removeItem(MARK);
      actFor(null);
      payBy(null);
      // The cached data belongs to the previous user.
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
      queries.setQueryData(SESSION_KEY, session);
    },
    [queries],
  );
  return { session: found, loading: asked && isPending, error, refetch, changed };
}

/** Asks the gateway for the session of the cookie, and for the ways to sign in. */
export const askSession = async (): Promise<Session | (Found & { readonly account: null })> =>
  (await call(api.GET(PATH))) as Session | (Found & { readonly account: null });

async function findSession(): Promise<Session | null> {
  const found = await askSession();
  if (found.account !== null) return found;
  localStorage.removeItem(MARK);
  return null;
}

/** A proof of identity. */
export type SignInProof = BodyOf<'signABrowserIn'>;

export const signIn = async (proof: SignInProof): Promise<Session> =>
  (await call(api.POST(PATH, { body: proof }))) as Session;

/** Rejects with ApiError if the session may still exist. If it has already ended, that is no error. */
export const signOut = (): Promise<unknown> => call(api.DELETE(PATH)).catch(passIfSignedOut);
