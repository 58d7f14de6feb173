import { useQuery } from '@tanstack/react-query';
import { type ComponentType, lazy, type ReactNode, Suspense } from 'react';
import { useLocation } from 'wouter';
import { askOperator } from '../../api/operator.ts';
import { COMPANY, CompanyLink } from '../../account/company.tsx';
import { useSearchState } from '../../app/search.ts';
import { ErrorBoundary } from '../../app/error-boundary.tsx';
import { Heading } from '../../ui/heading.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { PageSkeleton } from '../../ui/skeleton.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { OperatorForm } from '../sign-in/operator-form.tsx';
import { AdminKeyProvider } from './admin-key.tsx';
import { accountPage, callPage } from './paths.ts';
import { SearchField } from '../../ui/search-field.tsx';

const TABS = [
  { id: 'home', name: 'Home' },
  { id: 'accounts', name: 'Accounts' },
  { id: 'usage', name: 'Usage' },
  { id: 'services', name: 'Services' },
  { id: 'providers', name: 'Providers' },
  { id: 'chains', name: 'Chains and treasuries' },
  { id: 'vendors', name: 'Bills of vendors' },
  { id: 'audit', name: 'Audit' },
  { id: 'gateways', name: 'Gateways' },
  { id: 'changes', name: 'Changes' },
] as const;
/** The pages of the operator, each in a chunk of its own. */
const PANELS: Readonly<Record<string, ComponentType>> = {
  home: lazy(() => import('./home.tsx')),
  accounts: lazy(() => import('./account-pages.tsx')),
  usage: lazy(() => import('./usage.tsx')),
  services: lazy(() => import('./services.tsx')),
  providers: lazy(() => import('./providers.tsx')),
  chains: lazy(() => import('./chains.tsx')),
  vendors: lazy(() => import('./reconciliations.tsx')),
  audit: lazy(() => import('./audit.tsx')),
  gateways: lazy(() => import('./gateways.tsx')),
  changes: lazy(() => import('./changes.tsx')),
};
const START = { tab: '', account: '', call: '' };

/** The page of an account by its id or name, or of a call by its id. */
function pageOfText(text: string): string {
  if (text.startsWith('gen-')) return callPage('', text);
  return accountPage(text.includes(':') ? text : `tollgate:local:${text}`);
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
                COMPANY === null ? 'Sign in with an admin key of this gateway.' : 'Sign in to administer this gateway.'
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
  const [{ tab, account, call }] = useSearchState(START);
  const [, navigate] = useLocation();
  const chosen = TABS.find(({ id }) => id === tab)?.id ?? (account === '' && call === '' ? 'home' : 'accounts');
  const Panel = PANELS[chosen]!;
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
          <SearchField
            label="Find an account or a call"
            name="Account, or id of a call"
            labelHidden
            placeholder="Account, or id of a call"
            className="w-64 max-w-full"
            onFind={(text) => text !== '' && navigate(pageOfText(text))}
          />
        }
      />
      <Tabs
        label="Pages of the operator"
        tabs={TABS}
        chosen={chosen}
        onChoose={(id) => navigate(id === 'home' ? '/admin' : `/admin?tab=${id}`)}
      >
        <ErrorBoundary key={chosen}>
          <Suspense fallback={<PageSkeleton />}>
            <Panel />
          </Suspense>
        </ErrorBoundary>
      </Tabs>
    </>
  );
}
