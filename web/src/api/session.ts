import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { actFor } from './acting.ts';
import { passIfSignedOut } from './api-error.ts';
import { call } from './request.ts';

/** The ways to sign in. */
export type SignInWay = 'wallet' | 'api_key' | 'development';

/** The account that is signed in to this browser. */
export interface Session {
  /** A CAIP-10 id, or an account name that the gateway gave. */
  readonly account: string;
  readonly signed_in_by: SignInWay;
  /** `limited`: the session of a key with a spending limit, a rate, an expiry or a list of services. */
  readonly rights: 'full' | 'limited';
  /** The additional proof that requests for keys, withdrawals and wallets need. null if they need no proof. */
  readonly step_up: 'wallet' | 'api_key' | null;
  /** CAIP-10 id of the wallet that signed in. */
  readonly wallet: string | null;
  /** Hash of the API key that signed in. */
  readonly key: string | null;
  readonly id: string;
  readonly idle_at: string;
  readonly expires_at: string;
  readonly ways: readonly SignInWay[];
}

/** The answer to a browser that isn't signed in. */
interface NoSession {
  readonly account: null;
  readonly ways: readonly SignInWay[];
}

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
      // The cached data belongs to the previous user.
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
      queries.setQueryData(SESSION_KEY, session);
    },
    [queries],
  );
  return { session: found, loading: asked && isPending, error, refetch, changed };
}

/** Asks the gateway for the session of the cookie, and for the ways to sign in. */
export const askSession = (): Promise<Session | NoSession> => call(PATH);

async function findSession(): Promise<Session | null> {
  const found = await askSession();
  if (found.account !== null) return found;
  localStorage.removeItem(MARK);
  return null;
}

/** A proof of identity, in the form of `POST /api/v1/auth/session`. */
export type SignInProof = { readonly siwx: string } | { readonly api_key: string } | { readonly development: true };

export const signIn = (proof: SignInProof): Promise<Session> => call(PATH, { method: 'POST', json: proof });

/** Rejects with ApiError if the session may still exist. If it has already ended, that is no error. */
export const signOut = (): Promise<unknown> => call(PATH, { method: 'DELETE' }).catch(passIfSignedOut);
