import { useEffect, useState, type ReactNode } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { ApiError } from '../api/api-error.ts';
import { askSession, type Session, signIn, useSession } from '../api/session.ts';
import { buttonStyle } from '../ui/button-style.ts';
import { Empty } from '../ui/empty.tsx';
import { PageSkeleton } from '../ui/skeleton.tsx';
import { comesByItself, stayAway } from './local-developer.ts';

/**
 * The session of this browser. In development the local developer is signed in automatically. `waiting` is true until
 * it is known whether somebody is signed in.
 */
export function useArrival(): { readonly session: Session | null; readonly waiting: boolean } {
  const { session, loading, changed } = useSession();
  const [trying, setTrying] = useState(comesByItself);
  const tries = trying && !loading && session === null;
  useEffect(() => {
    if (!tries) return;
    void askSession()
      .then(({ ways }) => (ways.includes('development') ? signIn({ development: true }) : null))
      .then(
        (found) => {
          if (found === null) stayAway(true);
          else changed(found);
        },
        (error: unknown) => {
          // A gateway that does not answer now may answer the next page.
          if (error instanceof ApiError && error.status >= 400 && error.status < 500) stayAway(true);
        },
      )
      .finally(() => setTrying(false));
  }, [tries, changed]);
  return { session, waiting: loading || tries };
}

/**
 * Shows a page to a signed-in user, and a link to the sign-in page to everybody else. In development the local
 * developer is signed in automatically.
 */
export function SignedIn({ children }: { readonly children: (session: Session) => ReactNode }): ReactNode {
  const { session, waiting } = useArrival();
  const [path] = useLocation();
  const query = useSearch();
  if (session !== null) return children(session);
  if (waiting) return <PageSkeleton />;
  return (
    <Empty
      heading="h1"
      title="Sign in to see this"
      text="This page is about your account: sign in with a wallet or an API key."
      action={
        <Link
          href={`/sign-in?next=${encodeURIComponent(query === '' ? path : `${path}?${query}`)}`}
          className={buttonStyle('primary')}
        >
          Sign in
        </Link>
      }
    />
  );
}
