import { useEffect, useState, type ReactNode } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { ApiError } from '../api/api-error.ts';
import { askSession, type Session, signIn, useSession } from '../api/session.ts';
import { buttonStyle } from '../ui/button-style.ts';
import { Button } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { ErrorNote } from '../ui/error-note.tsx';
import { PageSkeleton } from '../ui/skeleton.tsx';
import { COMPANY } from './company.tsx';
import { comesByItself, stayAway } from './local-developer.ts';

/**
 * The session of this browser. In development the local developer is signed in automatically. `waiting` is true until
 * it is known whether somebody is signed in. `error` is set if the gateway could not be asked; `retry` asks again.
 */
export function useArrival(): {
  readonly session: Session | null;
  readonly waiting: boolean;
  readonly error: Error | null;
  readonly retry: () => void;
} {
  const { session, loading, error, refetch, changed } = useSession();
  const [trying, setTrying] = useState(comesByItself);
  const [failed, setFailed] = useState<Error | null>(null);
  const tries = trying && !loading && error === null && session === null;
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
          else setFailed(error as Error);
        },
      )
      .finally(() => setTrying(false));
  }, [tries, changed]);
  const retry = () => {
    setFailed(null);
    if (error === null) setTrying(comesByItself());
    else refetch();
  };
  return { session, waiting: loading || tries, error: error ?? failed, retry };
}

/**
 * Shows a page, or with `part` a part of one, to a signed-in user, and a link to the sign-in page to everybody else; an
 * error if the gateway does not answer. In development the local developer is signed in automatically.
 */
export function SignedIn({
  part,
  children,
}: {
  /** The words for everybody else. */
  readonly part?: { readonly title: string; readonly why: string };
  readonly children: (session: Session) => ReactNode;
}): ReactNode {
  const { session, waiting, error, retry } = useArrival();
  const [path] = useLocation();
  const query = useSearch();
  if (session !== null) return children(session);
  if (waiting) return <PageSkeleton />;
  if (error !== null) return <ErrorNote error={error} action={<Button onClick={retry}>Try again</Button>} />;
  return (
    <Empty
      heading={part === undefined ? 'h1' : 'h2'}
      title={part?.title ?? 'Sign in to see this'}
      text={`${part?.why ?? 'This page is about your account'}: sign in with ${COMPANY === null ? '' : `${COMPANY}, `}a wallet or an API key.`}
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
