import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, type ReactNode } from 'react';
import { Link } from 'wouter';
import { askOperator, type OperatorSession, signOutOperator } from '../../api/operator.ts';
import { COMPANY, CompanyLink } from '../../account/company.tsx';
import { useSearchState } from '../../app/search.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Heading } from '../../ui/heading.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { OperatorForm } from '../sign-in/operator-form.tsx';
import { AccountPage } from './account-page.tsx';
import { Accounts } from './accounts.tsx';
import { AdminKeyProvider } from './admin-key.tsx';
import { Audit } from './audit.tsx';
import { Chains } from './chains.tsx';
import { Gateways } from './gateways.tsx';
import { Home } from './home.tsx';
import { OperatorCall } from './operator-call.tsx';
import { accountPage, callPage } from './paths.ts';
import { Providers } from './providers.tsx';
import { Reconciliations } from './reconciliations.tsx';

const TABS = [
  { id: 'home', name: 'Home' },
  { id: 'accounts', name: 'Accounts' },
  { id: 'providers', name: 'Providers' },
  { id: 'chains', name: 'Chains and treasuries' },
  { id: 'vendors', name: 'Bills of vendors' },
  { id: 'audit', name: 'Audit' },
  { id: 'gateways', name: 'Gateways' },
] as const;
const PANELS: Readonly<Record<string, () => ReactNode>> = {
  home: Home,
  accounts: AccountPages,
  providers: Providers,
  chains: Chains,
  vendors: Reconciliations,
  audit: Audit,
  gateways: Gateways,
};
const START = { tab: '', account: '', call: '', range: '24h' };

/** Begins at the top. The path of these pages is the same, so the app does not scroll by itself. */
function FromTop({ children }: { readonly children: ReactNode }): ReactNode {
  useEffect(() => {
    scrollTo(0, 0);
  }, []);
  return children;
}

/** The list of accounts, one of them, or one of its calls: whichever the address names. */
function AccountPages(): ReactNode {
  const [{ account, call }] = useSearchState(START);
  if (account === '') return <Accounts pageOf={accountPage} />;
  const pageOf = (id: string) => callPage(account, id);
  return (
    <>
      <p className="mb-4 flex flex-wrap gap-x-2">
        <Link href="/admin?tab=accounts" className="link">
          All accounts
        </Link>
        {call !== '' && (
          <>
            <span aria-hidden>/</span>
            <Link href={accountPage(account)} className="link break-all">
              {account}
            </Link>
          </>
        )}
      </p>
      <FromTop key={`${account} ${call}`}>
        {call === '' ? <AccountPage id={account} pageOf={pageOf} /> : <OperatorCall id={call} pageOf={pageOf} />}
      </FromTop>
    </>
  );
}

export default function AdminPage(): ReactNode {
  const operator = useQuery({ queryKey: ['operator'], queryFn: askOperator, refetchInterval: 60_000 });
  return (
    <QueryView query={operator}>
      {({ signed_in, expires_at, changes }) =>
        signed_in ? (
          <AdminKeyProvider needsKey={!changes}>
            <Pages until={expires_at} />
          </AdminKeyProvider>
        ) : (
          <div className="mx-auto max-w-xl">
            <Heading
              title="Operator"
              lead={
                COMPANY === null ? 'Sign in with the admin key of this gateway.' : 'Sign in to administer this gateway.'
              }
            />
            {COMPANY !== null && (
              <div className="mb-5 grid justify-items-start gap-3 rounded-xl border border-line bg-card px-5 py-4">
                <p className="text-soft">
                  Administrators sign in at {COMPANY}, also if the admin key is lost. What you may do follows from your
                  groups there.
                </p>
                <CompanyLink after="/admin" />
              </div>
            )}
            <OperatorForm open={COMPANY === null} onDone={() => void operator.refetch()} />
          </div>
        )
      }
    </QueryView>
  );
}

function Pages({ until }: { readonly until: string | null }): ReactNode {
  const [{ tab, account }, set] = useSearchState(START);
  const queries = useQueryClient();
  const chosen = TABS.find(({ id }) => id === tab)?.id ?? (account === '' ? 'home' : 'accounts');
  const Panel = PANELS[chosen]!;
  const leave = useMutation({
    mutationFn: signOutOperator,
    onSuccess: () => {
      // The session is set to signed out first, so that the pages disappear. A query that is removed while it is shown
      // would be sent again.
      queries.setQueryData<OperatorSession>(['operator'], { signed_in: false, changes: false, expires_at: null });
      queries.removeQueries({ queryKey: ['admin'] });
    },
  });
  return (
    <>
      <Heading
        title="Operator"
        lead={
          until === null ? undefined : (
            <>
              You can look until <Time at={until} exact />. Changes ask for the admin key.
            </>
          )
        }
        action={
          <Button busy={leave.isPending} onClick={() => leave.mutate()}>
            Sign out
          </Button>
        }
      />
      {leave.error !== null && <ErrorNote error={leave.error} title="You are still signed in" />}
      <Tabs label="Pages of the operator" tabs={TABS} chosen={chosen} onChoose={(id) => set({ ...START, tab: id })}>
        <Panel />
      </Tabs>
    </>
  );
}
