import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { type OwnFigures, useBalance, useCalls, useChains, useOwnAnalytics, utcDay } from '../../api/own.ts';
import { actFor, actsFor } from '../../api/acting.ts';
import { organisationName, useOrganisations } from '../../api/organisation.ts';
import { Button } from '../../ui/button.tsx';
import { buttonStyle } from '../../ui/button-style.ts';
import { Card, Figure } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Money } from '../../ui/money.tsx';
import { formatMicroUsd } from '../../ui/usd.ts';
import { formatCalls, formatShort } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { CallsTable } from '../../calls/calls-table.tsx';
import { Frame } from './frame.tsx';

export default function DashboardPage(): ReactNode {
  return (
    <Frame title="Overview">
      {(session) => (
        <div className="grid gap-5">
          <Organisations />
          <Figures />
          <OpenCalls />
          <LastCalls />
          <ByModel />
          {session.rights === 'limited' && (
            <p className="text-sm text-soft">
              This is the session of a limited key: calls and figures are those of this key alone.
            </p>
          )}
        </div>
      )}
    </Frame>
  );
}

/** Tells a member of organisations whose own account these pages show, and how to see the others. */
function Organisations(): ReactNode {
  const own = actsFor() === null;
  const { data: organisations = [] } = useOrganisations(own);
  if (!own || organisations.length === 0) return null;
  const act = (account: string) => {
    actFor(account);
    window.location.assign('/dashboard');
  };
  return (
    <Card>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <p className="text-soft">This is your own account. You are also a member of an organisation.</p>
        <span className="flex flex-wrap gap-2">
          {organisations.slice(0, SHOWN).map((one) => (
            <Button key={one.account} size="small" onClick={() => act(one.account)}>
              Act for {organisationName(one)}
            </Button>
          ))}
        </span>
      </div>
    </Card>
  );
}

const sumOf = (rows: readonly OwnFigures[]) => rows.reduce((sum, { cost_micro_usdc }) => sum + cost_micro_usdc, 0);
/** A placeholder for a figure that is loading. */
const Waiting = () => <Skeleton className="my-1.5 h-6 w-20" />;

function Figures(): ReactNode {
  const balance = useBalance().data;
  const chains = useChains().data;
  const canPayIn = chains && chains.length > 0;
  const days = useOwnAnalytics('day', utcDay(6)).data?.data;
  const today = days?.filter(({ date }) => date === utcDay(0));
  const requests = days?.reduce((sum, row) => sum + row.requests, 0);
  return (
    <Card>
      <dl className="grid grid-cols-2 gap-x-6 gap-y-6 md:grid-cols-4">
        <Figure
          name="Available"
          value={balance ? <Money micro={balance.balance_micro_usdc} held /> : <Waiting />}
          note={
            balance && balance.locked_micro_usdc > 0 ? (
              <>
                <Money micro={balance.locked_micro_usdc} /> locked by calls that are not over
              </>
            ) : (
              <Link href="/dashboard/balance" className="link">
                {canPayIn === false ? 'How to get more' : 'Add money'}
              </Link>
            )
          }
        />
        <Figure
          name="Spent today"
          value={today ? <Money micro={sumOf(today)} /> : <Waiting />}
          note="since 00:00 UTC"
        />
        <Figure
          name="Spent in 7 days"
          value={days ? <Money micro={sumOf(days)} /> : <Waiting />}
          note="today included"
        />
        <Figure
          name="Calls in 7 days"
          value={requests === undefined ? <Waiting /> : formatShort(requests)}
          note={
            <Link href="/dashboard/activity" className="link">
              By day
            </Link>
          }
        />
      </dl>
    </Card>
  );
}

/** Calls, tasks and videos that are still running. */
function OpenCalls(): ReactNode {
  const running = useCalls({ state: 'held' }, 10).data?.pages.flatMap(({ data }) => data) ?? [];
  if (running.length === 0) return null;
  return (
    <Card title="Not over yet" flush>
      <CallsTable calls={running} />
    </Card>
  );
}

function LastCalls(): ReactNode {
  const calls = useCalls({}, 8);
  return (
    <Card
      title="Last calls"
      flush
      action={
        <Link href="/dashboard/calls" className="link text-sm">
          All calls
        </Link>
      }
    >
      <QueryView
        query={calls}
        loading={
          <div className="p-5">
            <Skeleton className="h-80 w-full" />
          </div>
        }
      >
        {({ pages }) => (
          <CallsTable
            calls={pages.flatMap(({ data }) => data).slice(0, 8)}
            empty={
              <Empty
                title="No call yet"
                text="Try a service in the playground, or make a key and call from your own code."
                action={
                  <div className="flex flex-wrap justify-center gap-2">
                    <Link href="/playground" className={buttonStyle('primary')}>
                      Open the playground
                    </Link>
                    <Link href="/dashboard/keys" className={buttonStyle()}>
                      Make a key
                    </Link>
                  </div>
                }
              />
            }
          />
        )}
      </QueryView>
    </Card>
  );
}

const SHOWN = 6;

function ByModel(): ReactNode {
  const rows = useOwnAnalytics('model', utcDay(6)).data?.data;
  if (rows === undefined || rows.length === 0) return null;
  const most = Math.max(...rows.map(({ cost_micro_usdc }) => cost_micro_usdc), 1);
  return (
    <Card title="Where it went, 7 days">
      <ul className="grid gap-3">
        {rows.slice(0, SHOWN).map((row) => (
          <li key={row.model} className="grid grid-cols-[minmax(0,1fr)_6.5rem] items-baseline gap-x-4 gap-y-1">
            <span className="truncate font-medium">{row.model}</span>
            <span className="figures text-right">{formatMicroUsd(row.cost_micro_usdc)}</span>
            <span aria-hidden className="h-1.5 overflow-hidden rounded-full bg-sunk">
              <span
                className="block h-full rounded-full bg-accent"
                style={{ width: `${Math.max(1, (row.cost_micro_usdc / most) * 100)}%` }}
              />
            </span>
            <span className="figures text-right text-sm text-soft">{formatCalls(row.requests)}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
