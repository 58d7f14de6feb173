import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { CircleAlert } from 'lucide-react';
import { useMemo, type ReactNode } from 'react';
import { Link } from 'wouter';
import { AccountName } from '../../account/account-name.tsx';
import { api, data, type Schemas } from '../../api/client.ts';
import { useSearchState } from '../../app/search.ts';
import { Card, Figure } from '../../ui/card.tsx';
import { Chart } from '../../ui/chart.tsx';
import { Empty } from '../../ui/empty.tsx';
import { KIND_NAMES, type Kind } from '../../ui/kinds.ts';
import { Money } from '../../ui/money.tsx';
import { formatNumber, formatShare, formatShort } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { AlertList, GatewayTable, problemsOf } from './gateways.tsx';
import { accountPage, sellerPage, servicesPage } from './paths.ts';
import {
  Causes,
  isUnknown,
  Margin,
  MARGIN_COLUMN,
  OfUnknownCost,
  RangeChoice,
  rangeOf,
  SUMS_COLUMNS,
} from './sums.tsx';

type Overview = Schemas['Overview'];
type Customer = Overview['customers'][number];
type Service = Overview['services'][number];
type Provider = Overview['providers'][number];

const START = { range: '24h' };

/** The state of the whole gateway. */
export default function Home(): ReactNode {
  const [search, set] = useSearchState(START);
  const range = rangeOf(search.range);
  const overview = useQuery({
    queryKey: ['admin', 'overview', range],
    queryFn: () => data(api.GET('/admin/v1/overview', { params: { query: { range } } })),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  return (
    <div className="grid gap-5">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <RangeChoice chosen={range} onChoose={(chosen) => set({ range: chosen })} />
        {overview.data?.as_of != null && (
          <p className="text-sm text-soft">
            Last counted call: <Time at={overview.data.as_of} />
          </p>
        )}
      </div>
      <QueryView query={overview}>{(found) => <Found overview={found} />}</QueryView>
    </div>
  );
}

function Found({ overview }: { readonly overview: Overview }): ReactNode {
  return (
    <>
      <Warnings overview={overview} />
      <Totals overview={overview} />
      <Volume overview={overview} />
      <div className="grid gap-5 lg:grid-cols-2">
        <Card title="Failed calls by cause">
          <Causes failures={overview.failures} />
        </Card>
        <MoneyAtRest money={overview.money} />
      </div>
      <Top
        title="Customers"
        columns={CUSTOMERS}
        rows={overview.customers}
        rowKey={({ account }) => account}
        empty="No account called in this range."
        advice={
          <>
            A customer needs an account with money, and a key:{' '}
            <a href="/docs/guide/run/first-account" className="link">
              the first account
            </a>
          </>
        }
      />
      <div className="grid gap-5 lg:grid-cols-2">
        <Top
          title="Services"
          columns={SERVICES}
          rows={overview.services}
          rowKey={({ primitive, service }) => `${primitive}/${service}`}
          empty="Nothing was called in this range."
          advice={
            <Link href="/admin?tab=services" className="link">
              What is on sale
            </Link>
          }
        />
        <Top
          title="Providers"
          columns={PROVIDERS}
          rows={overview.providers}
          rowKey={({ provider }) => provider}
          empty="Nobody served in this range."
          advice={
            <Link href="/admin?tab=providers" className="link">
              Who may serve
            </Link>
          }
        />
      </div>
      <Card title="Gateways" flush>
        <GatewayTable gateways={overview.gateways} />
      </Card>
    </>
  );
}

const SHOWN_ALERTS = 5;

const attemptsOf = (count: number) => `${formatNumber(count)} ${count === 1 ? 'attempt' : 'attempts'}`;

/** Alerts, gateways and providers that somebody should look at. Nothing if all is well. */
function Warnings({
  overview: { alerts, alerts_since: since, gateways, providers },
}: {
  readonly overview: Overview;
}): ReactNode {
  const failing = providers.filter((each) => each.failing !== null);
  const broken = gateways.filter(({ state }) => state === 'not_ready' || state === 'silent');
  if (alerts.length === 0 && broken.length === 0 && failing.length === 0) return null;
  return (
    <Card
      title={
        <span className="flex items-center gap-2">
          <CircleAlert size={18} aria-hidden className="text-warn" />
          Alerts of the last day
        </span>
      }
      action={
        <Link href="/admin?tab=gateways" className="link text-sm">
          All of each gateway
        </Link>
      }
    >
      {broken.map((gateway) => (
        <p key={gateway.id} className="mb-2 text-bad">
          {gateway.host} {gateway.pid}{' '}
          {gateway.state === 'silent' ? (
            <>
              has not reported since <Time at={gateway.reported_at} exact />.
            </>
          ) : (
            `refuses calls. ${problemsOf(gateway).join(' ')}`
          )}
        </p>
      ))}
      {failing.map(({ provider, name, failing: failures }) => (
        <p key={provider} className="mb-2 text-bad">
          <Link href={sellerPage(provider)} className="font-medium hover:underline">
            {name ?? provider}
          </Link>{' '}
          answered none of {attemptsOf(failures!.attempts)}. {failures!.reason}
        </p>
      ))}
      <AlertList alerts={alerts.slice(0, SHOWN_ALERTS)} />
      {since !== null && (
        <p className="mt-2 text-sm text-soft">
          All since <Time at={since} exact />. A restart forgets those before it.
        </p>
      )}
    </Card>
  );
}

function Totals({ overview: { totals, accounts } }: { readonly overview: Overview }): ReactNode {
  const calls = totals.requests + totals.failed;
  return (
    <Card>
      <dl className="grid grid-cols-2 gap-6 md:grid-cols-4">
        <Figure
          name="Calls"
          value={formatShort(calls)}
          note={`by ${formatNumber(accounts)} ${accounts === 1 ? 'account' : 'accounts'}`}
        />
        <Figure
          name="Failed"
          value={formatShort(totals.failed)}
          note={calls === 0 ? undefined : `${formatShare(totals.failed / calls)} of the calls`}
        />
        <Figure
          name="Charged"
          value={<Money micro={totals.charged_micro_usdc} />}
          note={
            <>
              <Money micro={totals.fee_micro_usdc} /> of it fees
              {totals.providers_micro_usdc > 0 && (
                <>
                  , <Money micro={totals.providers_micro_usdc} /> earned by providers
                </>
              )}
            </>
          }
        />
        <Figure
          name="Margin"
          value={
            isUnknown(totals) && totals.margin_micro_usd === 0 ? 'unknown' : <Margin micro={totals.margin_micro_usd} />
          }
          note={
            <>
              {!isUnknown(totals) && (
                <span className="block">
                  after a cost of <Money micro={totals.cost_micro_usd} />
                </span>
              )}
              <span className="block">
                <OfUnknownCost sums={totals} />
              </span>
            </>
          }
        />
      </dl>
    </Card>
  );
}

function Volume({ overview: { by_time: times, range } }: { readonly overview: Overview }): ReactNode {
  const hours = range === '24h';
  const [days, series] = useMemo(
    () => [
      times.map(({ at }) => (hours ? at : at.slice(0, 10))),
      [
        { name: 'Served', values: times.map(({ requests }) => requests), color: '--accent' },
        { name: 'Failed', values: times.map(({ failed }) => failed), color: '--bad' },
      ],
    ],
    [times, hours],
  );
  return (
    <Card title={hours ? 'Calls by hour' : 'Calls by day'}>
      <Chart
        title={hours ? 'Calls by hour' : 'Calls by day'}
        days={days}
        hours={hours}
        series={series}
        format={formatShort}
        stacked
        height={200}
      />
    </Card>
  );
}

type Money = readonly [member: keyof Overview['money'], name: string, note: string, page?: string];

const MONEY: readonly Money[] = [
  ['deposits_micro_usdc', 'Deposits of accounts', 'They can spend it.', '/admin?tab=accounts'],
  ['locked_micro_usdc', 'Locked', 'By calls that run.'],
  ['owed_to_providers_micro_usdc', 'Owed to providers', 'Earned, and not paid out.', '/admin?tab=providers'],
  ['operator_micro_usdc', 'Yours', 'Fees, and what your own services earned.'],
  ['suspense_micro_usdc', 'Of nobody yet', 'Deposits from unknown wallets.'],
  ['grants_micro_usdc', 'Credit that you granted', 'Less what you took back, paid out or put on chains.'],
];

function MoneyAtRest({ money }: { readonly money: Overview['money'] }): ReactNode {
  const shown = MONEY.filter(([name]) => name !== 'suspense_micro_usdc' || money[name] !== 0);
  return (
    <Card title="Money at rest">
      <dl className="grid gap-y-3">
        {shown.map(([member, name, note, page]) => (
          <div key={member} className="flex items-baseline justify-between gap-4">
            <dt>
              {page === undefined ? (
                name
              ) : (
                <Link href={page} className="hover:underline">
                  {name}
                </Link>
              )}
              <span className="block text-sm text-soft">{note}</span>
            </dt>
            <dd className="font-medium">
              <Money micro={money[member]} held={money[member] >= 0} />
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

function Top<Row>({
  title,
  columns,
  rows,
  rowKey,
  empty,
  advice,
}: {
  readonly title: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  readonly empty: string;
  /** Says how a row comes to be. An empty table shows it. */
  readonly advice: ReactNode;
}): ReactNode {
  return (
    <Card title={title} flush>
      <Table
        caption={title}
        columns={columns}
        rows={rows}
        rowKey={rowKey}
        empty={<Empty title={empty} text={advice} />}
      />
    </Card>
  );
}

/** Leaves this column out on phones, where four do not fit. */
const fromWide =
  (id: string) =>
  <Row,>(column: Column<Row>): Column<Row> =>
    column.id === id ? { ...column, from: 'sm' } : column;

const CUSTOMERS: readonly Column<Customer>[] = [
  {
    id: 'account',
    head: 'Account',
    cell: ({ account, label }) => (
      <Link href={accountPage(account)} className="font-medium hover:underline">
        {label === '' ? <AccountName account={account} /> : label}
      </Link>
    ),
  },
  ...SUMS_COLUMNS.map(fromWide('failed')),
];

const SERVICES: readonly Column<Service>[] = [
  {
    id: 'service',
    head: 'Service',
    cell: ({ primitive, service }) => (
      <>
        <Link href={servicesPage(service)} className="font-medium hover:underline">
          {service}
        </Link>
        <span className="block text-sm text-soft">{KIND_NAMES[primitive as Kind]?.one ?? primitive}</span>
      </>
    ),
  },
  ...SUMS_COLUMNS.filter(({ id }) => id !== 'requests').map(fromWide('failed')),
  MARGIN_COLUMN,
];

const PROVIDERS: readonly Column<Provider>[] = [
  {
    id: 'provider',
    head: 'Provider',
    cell: ({ provider, name, own, failing }) => (
      <>
        <Link href={sellerPage(provider)} className="font-medium hover:underline">
          {name ?? `${provider.slice(0, 8)}…`}
        </Link>
        <span className="block text-sm text-soft">{own ? 'in the configuration' : 'dialled in'}</span>
        {failing !== null && (
          <span className="block text-sm break-words text-bad">
            No answer to {attemptsOf(failing.attempts)}
            {failing.reason !== null && `: ${failing.reason}`}
          </span>
        )}
      </>
    ),
  },
  ...SUMS_COLUMNS.filter(({ id }) => id !== 'failed').map(fromWide('requests')),
  MARGIN_COLUMN,
];
