import { useMutation } from '@tanstack/react-query';
import {
  Cable,
  ChartColumn,
  CircleUserRound,
  FileText,
  Gauge,
  Hand,
  KeyRound,
  LogOut,
  Plug,
  ScrollText,
  Users,
  Wallet,
} from 'lucide-react';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { AccountName } from '../../account/account-name.tsx';
import { stayAway } from '../../account/local-developer.ts';
import { ProofProvider } from '../../account/proof.tsx';
import { SignedIn } from '../../account/signed-in.tsx';
import { actFor, actsFor } from '../../api/acting.ts';
import { useOrganisations } from '../../api/organisation.ts';
import { type Session, signOut, useSession } from '../../api/session.ts';
import { useCurrentInView } from '../../ui/current-in-view.ts';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Heading } from '../../ui/heading.tsx';

const PAGES = [
  ['/dashboard', 'Overview', Gauge],
  ['/dashboard/calls', 'Calls', ScrollText],
  ['/dashboard/activity', 'Activity', ChartColumn],
  ['/dashboard/keys', 'Keys', KeyRound],
  ['/dashboard/connect', 'Connect', Cable],
  ['/dashboard/approvals', 'Approvals', Hand],
  ['/dashboard/balance', 'Balance', Wallet],
  ['/dashboard/statement', 'Statement', FileText],
  ['/dashboard/provider', 'Provider', Plug],
  ['/dashboard/organisation', 'Organisation', Users],
  ['/dashboard/sessions', 'Sessions', CircleUserRound],
] as const;

const isHere = (href: string, path: string) => path === href || (href !== '/dashboard' && path.startsWith(`${href}/`));

/** The frame of an account's pages: the navigation, and the account's name. */
export function Frame({
  title,
  lead,
  above,
  action,
  children,
}: {
  readonly title: ReactNode;
  readonly lead?: ReactNode;
  readonly above?: ReactNode;
  readonly action?: (session: Session) => ReactNode;
  readonly children: (session: Session) => ReactNode;
}): ReactNode {
  return (
    <SignedIn>
      {(session) => (
        <ProofProvider session={session}>
          <div className="gap-10 lg:grid lg:grid-cols-[184px_minmax(0,1fr)] print:block">
            <Side session={session} />
            <div className="min-w-0">
              <Heading
                title={title}
                {...(lead === undefined ? {} : { lead })}
                {...(above === undefined ? {} : { above })}
                {...(action === undefined ? {} : { action: action(session) })}
              />
              {children(session)}
            </div>
          </div>
        </ProofProvider>
      )}
    </SignedIn>
  );
}

function Side({ session }: { readonly session: Session }): ReactNode {
  const [path] = useLocation();
  const row = useCurrentInView<HTMLElement>(path);
  return (
    <div className="mb-6 lg:mb-0 print:hidden">
      <div className="lg:sticky lg:top-22">
        <nav
          ref={row}
          aria-label="Account"
          className="-mx-4 flex gap-1 overflow-x-auto border-b border-line px-4 pb-2 [scrollbar-width:none] sm:-mx-6 sm:px-6 lg:mx-0 lg:grid lg:border-0 lg:p-0"
        >
          {PAGES.map(([href, name, Icon]) => (
            <Link
              key={href}
              href={href}
              aria-current={isHere(href, path) ? 'page' : undefined}
              className="flex shrink-0 items-center gap-2.5 rounded-md px-2.5 py-2 text-sm font-medium text-soft -outline-offset-2 hover:bg-sunk hover:text-ink aria-[current=page]:bg-sunk aria-[current=page]:text-ink"
            >
              <Icon size={16} aria-hidden />
              {name}
            </Link>
          ))}
        </nav>
        <Who session={session} />
      </div>
    </div>
  );
}

/** Tells that the pages show an organisation, with a button back to the own account. */
function Acting(): ReactNode {
  const account = actsFor();
  const { data: organisations } = useOrganisations(account !== null);
  if (account === null) return null;
  const label = organisations?.find((one) => one.account === account)?.label ?? '';
  const stop = () => {
    actFor(null);
    window.location.assign('/dashboard');
  };
  return (
    <div className="mt-3 rounded-lg bg-warn-wash px-3 py-2 text-sm text-warn lg:mt-5">
      <p>You act for</p>
      <p className="truncate" title={account}>
        {label === '' ? <AccountName account={account} /> : <b className="font-semibold">{label}</b>}
      </p>
      <button type="button" onClick={stop} className="mt-1 font-medium underline">
        Stop
      </button>
    </div>
  );
}

const BY = { wallet: 'Wallet', api_key: 'API key', development: 'Local developer', person: 'Company' } as const;

function Who({ session }: { readonly session: Session }): ReactNode {
  const { changed } = useSession();
  const [, navigate] = useLocation();
  const leave = useMutation({
    mutationFn: signOut,
    onSuccess: () => {
      stayAway(true);
      changed(null);
      navigate('/sign-in');
    },
  });
  return (
    <>
      <Acting />
      {leave.error !== null && <ErrorNote error={leave.error} title="You are still signed in" />}
      <div className="mt-3 flex items-center justify-between gap-3 px-2.5 text-sm lg:mt-5 lg:border-t lg:border-line lg:pt-4">
        <div className="min-w-0">
          <p className="text-xs text-soft">
            {BY[session.signed_in_by]}
            {session.rights === 'limited' ? ', limited' : ''}
          </p>
          <p className="truncate">
            <AccountName account={session.account} />
          </p>
        </div>
        <button
          type="button"
          aria-label="Sign out"
          title="Sign out"
          disabled={leave.isPending}
          onClick={() => leave.mutate()}
          className="grid size-9 shrink-0 place-items-center rounded-md text-soft hover:bg-sunk hover:text-ink"
        >
          <LogOut size={16} aria-hidden />
        </button>
      </div>
    </>
  );
}
