import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { actFor } from './acting.ts';
import { passIfSignedOut } from './api-error.ts';
import { call } from './request.ts';

/** How somebody can sign in, or has. */
export type SignInWay = 'wallet' | 'api_key' | 'development';

/** The account that is signed in in this browser. */
export interface Session {
  /** CAIP-10, or the gateway's own name of an account. */
  readonly account: string;
  readonly signed_in_by: SignInWay;
  /** `limited`: of a key with a spending limit, a rate, an expiry or a list of services. */
  readonly rights: 'full' | 'limited';
  /** The proof that keys, withdrawals and wallets need with the request; null: none. */
  readonly step_up: 'wallet' | 'api_key' | null;
  /** CAIP-10 of the wallet that signed in. */
  readonly wallet: string | null;
  /** Hash of the API key that signed in. */
  readonly key: string | null;
  readonly id: string;
  readonly idle_at: string;
  readonly expires_at: string;
  readonly ways: readonly SignInWay[];
}

/** The answer for a browser that is not signed in. */
interface NoSession {
  readonly account: null;
  readonly ways: readonly SignInWay[];
}

/**
 * A visitor who never signed in is not asked about: most are, and each would cost a request that says no. The cookie
 * itself cannot be seen from here.
 */
const MARK = 'tollgate.signed-in';

const SESSION_KEY = ['session'] as const;
const PATH = '/api/v1/auth/session';

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
  const asked = localStorage.getItem(MARK) !== null;
  const { data: found = null, isPending } = useQuery({ queryKey: SESSION_KEY, queryFn: findSession, enabled: asked });
  const changed = useCallback(
    (session: Session | null) => {
      if (session) localStorage.setItem(MARK, '1');
      else localStorage.removeItem(MARK);
      actFor(null);
      // What was shown belongs to somebody else now.
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
      queries.setQueryData(SESSION_KEY, session);
    },
    [queries],
  );
  return { session: found, loading: asked && isPending, changed };
}

/** Asks the gateway whose session the cookie is of, and how this browser can sign in. */
export const askSession = (): Promise<Session | NoSession> => call(PATH);

async function findSession(): Promise<Session | null> {
  const found = await askSession();
  if (found.account !== null) return found;
  localStorage.removeItem(MARK);
  return null;
}

/** A proof of who one is, as `POST /api/v1/auth/session` takes it. */
export type SignInProof = { readonly siwx: string } | { readonly api_key: string } | { readonly development: true };

export const signIn = (proof: SignInProof): Promise<Session> => call(PATH, { method: 'POST', json: proof });

/** Rejects with ApiError if the session may go on. One that is over already is no error. */
export const signOut = (): Promise<unknown> => call(PATH, { method: 'DELETE' }).catch(passIfSignedOut);
