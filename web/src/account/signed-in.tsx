import { useEffect, useState, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { askSession, type Session, signIn, useSession } from '../api/session.ts';
import { buttonStyle } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { PageSkeleton } from '../ui/skeleton.tsx';
import { comesByItself, stayAway } from './local-developer.ts';

/**
 * Shows a page to whoever is signed in, and others the way to it. In development the local developer is signed in by
 * itself.
 */
export function SignedIn({ children }: { readonly children: (session: Session) => ReactNode }): ReactNode {
  const { session, loading, changed } = useSession();
  const [path] = useLocation();
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
        () => stayAway(true),
      )
      .finally(() => setTrying(false));
  }, [tries, changed]);
  if (session !== null) return children(session);
  if (loading || tries) return <PageSkeleton />;
  return (
    <Empty
      heading="h1"
      title="Sign in to see this"
      text="This page is about your account: sign in with a wallet or an API key."
      action={
        <Link href={`/sign-in?next=${encodeURIComponent(path)}`} className={buttonStyle('primary')}>
          Sign in
        </Link>
      }
    />
  );
}
