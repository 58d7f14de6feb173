import { useQuery } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { useLocation, useSearch } from 'wouter';
import { signInOperator } from '../../api/operator.ts';
import { askSession, signIn, type SignInProof, useSession } from '../../api/session.ts';
import { isElsewhere, Link } from '../../app/link.tsx';
import { COMPANY, COMPANY_FAILURES, CompanyLink } from '../../account/company.tsx';
import { AccountName } from '../../account/account-name.tsx';
import { stayAway } from '../../account/local-developer.ts';
import { buttonStyle } from '../../ui/button-style.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Heading } from '../../ui/heading.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { signSignIn } from '../../wallet/sign-in-message.ts';
import { useWallets } from '../../wallet/use-wallets.ts';
import type { FoundWallet } from '../../wallet/wallet.ts';
import { WalletList } from '../../wallet/wallet-list.tsx';
import { KeyForm } from './key-form.tsx';
import { OperatorForm } from './operator-form.tsx';

const STATEMENT = 'Sign in to my account. This costs nothing and moves no money.';
const HOME = '/dashboard';

/**
 * Only paths of this site are accepted, because an address of another site would be an open redirect. URL parses the
 * text as browsers do: it removes tabs and replaces backslashes. A path that begins with two slashes is refused,
 * because it means another host.
 */
const placeAfter = (query: string): string => {
  const next = URL.parse(new URLSearchParams(query).get('next') ?? HOME, location.origin);
  return next?.origin === location.origin && !next.pathname.startsWith('//') ? next.pathname + next.search : HOME;
};

export default function SignInPage(): ReactNode {
  const { session } = useSession();
  const query = useSearch();
  const after = placeAfter(query);
  const outcome = new URLSearchParams(query).get('people');
  const failure = outcome === null ? undefined : COMPANY_FAILURES[outcome];
  if (outcome === 'done') return <Arrival after={after} />;
  return (
    <div className="mx-auto max-w-xl">
      <Heading title="Sign in" lead="To see your balance, your calls and your keys, and to try services." />
      {failure !== undefined && (
        <div role="alert" className="mb-6 rounded-xl border border-line bg-accent-wash px-5 py-3.5">
          <p className="font-medium">{failure.title}</p>
          <p className="text-soft">{failure.text}</p>
        </div>
      )}
      {session !== null && (
        <div className="mb-6 flex flex-wrap items-center justify-between gap-3 rounded-xl border border-line bg-accent-wash px-5 py-3.5">
          <p>
            You are signed in as <AccountName account={session.account} />.
          </p>
          <Link href={after} className={buttonStyle('primary', 'small')}>
            Go on
          </Link>
        </div>
      )}
      <Ways after={after} />
    </div>
  );
}

/** The provider of the company has sent the browser back, and its session is there. */
function Arrival({ after }: { readonly after: string }): ReactNode {
  const { changed } = useSession();
  const [, navigate] = useLocation();
  const found = useQuery({ queryKey: ['session', 'arrival'], queryFn: askSession, staleTime: 0 });
  const session = found.data;
  useEffect(() => {
    if (session === undefined) return;
    if (session.account === null) return navigate('/sign-in?people=over', { replace: true });
    stayAway(false);
    changed(session);
    if (isElsewhere(after)) location.replace(after);
    else navigate(after, { replace: true });
  }, [session, changed, navigate, after]);
  return <QueryView query={found}>{() => <p className="text-soft">You are signed in.</p>}</QueryView>;
}

function Ways({ after }: { readonly after: string }): ReactNode {
  const { changed } = useSession();
  const [, navigate] = useLocation();
  const [failed, setFailed] = useState<{ readonly way: string; readonly error: unknown } | null>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const ways = useQuery({ queryKey: ['session', 'ways'], queryFn: askSession });
  const wallets = useWallets();

  const prove = async (id: string, proof: () => Promise<SignInProof>) => {
    setFailed(null);
    setBusy(id);
    try {
      const session = await signIn(await proof());
      stayAway(false);
      changed(session);
      if (isElsewhere(after)) location.assign(after);
      else navigate(after);
    } catch (error) {
      setFailed({ way: id, error });
    } finally {
      setBusy(null);
    }
  };
  const byKey = (key: string) => {
    if (!key.startsWith('svc-admin-')) return void prove('key', async () => ({ api_key: key }));
    setFailed(null);
    setBusy('key');
    void signInOperator(key)
      .then(
        () => navigate('/admin'),
        (error: unknown) => setFailed({ way: 'key', error }),
      )
      .finally(() => setBusy(null));
  };
  const byWallet = (wallet: FoundWallet) =>
    void prove(wallet.id, async () => ({ siwx: await signSignIn(await wallet.connect(), STATEMENT) }));

  /** The error of the last try, beside the form that it belongs to. */
  const fault = (isOf: (way: string) => boolean): ReactNode =>
    failed !== null &&
    isOf(failed.way) && (
      <div className="mt-4">
        <ErrorNote error={failed.error} help="Nothing has changed: check it, and try again." />
      </div>
    );

  return (
    <QueryView query={ways}>
      {({ ways: open }) => (
        <div className="grid gap-5">
          {open.includes('development') && (
            <Card title="Local developer">
              <p className="mb-4 text-soft">
                This gateway runs in development on this machine. Its local account has play money, and needs no proof.
              </p>
              <Button
                tone="primary"
                busy={busy === 'development'}
                onClick={() => void prove('development', async () => ({ development: true }))}
              >
                Sign in as the local developer
              </Button>
              {fault((way) => way === 'development')}
            </Card>
          )}
          {COMPANY !== null && (
            <Card title={COMPANY}>
              <p className="mb-4 text-soft">
                Your company says who you are, and what its groups may do here. You need no wallet and no key.
              </p>
              <CompanyLink after={after} />
            </Card>
          )}
          {open.includes('wallet') && (
            <Card title="Wallet">
              <p className="mb-4 text-soft">
                The wallet is your account. It signs a short text that names this gateway. That costs nothing, sends no
                transaction and gives nobody access to what is in the wallet.
              </p>
              <WalletList wallets={wallets} busy={busy} onChoose={byWallet} />
              {fault((way) => way !== 'development' && way !== 'key')}
            </Card>
          )}
          <Card title="API key">
            <KeyForm busy={busy === 'key'} onKey={byKey} />
            {fault((way) => way === 'key')}
          </Card>
          <OperatorForm />
        </div>
      )}
    </QueryView>
  );
}
