import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { utcDay } from '../../../api/own.ts';
import { type AnswerOf, api, call } from '../../../api/client.ts';
import { BOOT } from '../../../app/boot.ts';
import { useSearchState } from '../../../app/search.ts';
import { Badge } from '../../../ui/badge.tsx';
import { buttonStyle } from '../../../ui/button-style.ts';
import { Card, Figure } from '../../../ui/card.tsx';
import { Chart } from '../../../ui/chart.tsx';
import { Choice } from '../../../ui/choice.tsx';
import { CodeBlock } from '../../../ui/code-block.tsx';
import { Copy } from '../../../ui/copy.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { KindTile } from '../../../ui/kind.tsx';
import { Money } from '../../../ui/money.tsx';
import { formatMicroUsd } from '../../../ui/usd.ts';
import { formatCalls, formatNumber, formatShare } from '../../../ui/number.ts';
import { QueryView } from '../../../ui/query-view.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { Status } from '../../../ui/status.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { Time } from '../../../ui/time.tsx';
import { Frame } from '../frame.tsx';
import { OwnCalls } from './own-calls.tsx';
import { Payouts, Refunds } from './payouts.tsx';

type OwnService = AnswerOf<'showYourServices'>['services'][number];

const SPANS = [
  { value: '7', text: '7 days' },
  { value: '30', text: '30 days' },
  { value: '90', text: '90 days' },
] as const;
const START = { days: '30' };

export default function ProviderPage(): ReactNode {
  return (
    <Frame title="Provider" lead="What you offer through this gateway, how well it serves, and what it earned.">
      {({ rights }) =>
        rights === 'limited' ? (
          <Card>
            <Empty
              heading="h2"
              title="A limited key does not see this"
              text="Sign in with the wallet, or with a key without limits."
            />
          </Card>
        ) : (
          <Offers />
        )
      }
    </Frame>
  );
}

function Offers(): ReactNode {
  const own = useQuery({
    queryKey: ['own-services'],
    queryFn: () => call(api.GET('/api/v1/provider/services')),
    refetchInterval: 15_000,
  });
  return (
    <QueryView query={own} loading={<Skeleton className="h-96 w-full rounded-xl" />}>
      {(mine) => (
        <div className="grid gap-5">
          {mine.services.length === 0 ? (
            <NoService terms={mine.payout_terms.summary} />
          ) : (
            <>
              <Card>
                <dl className="flex flex-wrap items-start justify-between gap-6">
                  <Figure
                    name="Connection"
                    value={mine.banned_because !== null ? 'Banned' : mine.connected ? 'Connected' : 'Away'}
                    note={
                      mine.banned_because !== null ? (
                        `By the operator: ${mine.banned_because}`
                      ) : mine.connected_since === null ? (
                        'Start your proxy'
                      ) : (
                        <>
                          since <Time at={mine.connected_since} />
                        </>
                      )
                    }
                  />
                  <div className="min-w-0">
                    <dt className="text-sm text-soft">Known as</dt>
                    <dd className="flex items-center gap-1 font-mono text-sm break-all">
                      {mine.provider} <Copy text={mine.provider} label="Copy the id" />
                    </dd>
                  </div>
                </dl>
              </Card>
              <Services services={mine.services} />
            </>
          )}
          <Earned />
          {mine.services.length > 0 && <OwnCalls />}
          <Payouts />
          <Refunds />
        </div>
      )}
    </QueryView>
  );
}

const FILE = `# provider.toml
router = { url = "${BOOT.base_url}", siwx = { chain_id = "solana:mainnet", keypair_file = "wallet.json" } }
[[models]]
name = "acme/mock"
pricing = { prompt = 0.5, completion = 1.5 }     # USD per 1M tokens
params = { model = "gpt-4o", api_base = "http://127.0.0.1:4010" }`;

const COMMANDS = `node bin/tollgate.mjs keygen --chain solana --out wallet.json
node bin/tollgate.mjs provide --config provider.toml`;

function NoService({ terms }: { readonly terms: string }): ReactNode {
  return (
    <Card title="Offer a service">
      <p className="mb-4 max-w-[65ch] text-soft">
        Models, MCP tools and A2A agents that run on your machine can be called here, from behind a firewall. You set
        the price, and earn with each call.
      </p>
      <p className="mb-4 max-w-[65ch] text-soft">{terms}</p>
      <p className="mb-4 text-soft">Write a file and start the proxy:</p>
      <div className="grid gap-3">
        <CodeBlock code={FILE} label="A provider’s file" />
        <CodeBlock code={COMMANDS} label="Commands that make the wallet and start the proxy" />
      </div>
    </Card>
  );
}

const COLUMNS: readonly Column<OwnService>[] = [
  {
    id: 'service',
    head: 'Service',
    cell: (row) => (
      <span className="flex items-center gap-2.5">
        {row.primitive !== null && <KindTile kind={row.primitive} size={30} />}
        <span className="font-medium">{row.name}</span>
      </span>
    ),
  },
  {
    id: 'status',
    head: 'Standing',
    cell: ({ status, last_hour: { requests, failures } }) => (
      <Status status={status} uptime={requests === 0 ? null : 1 - failures / requests} />
    ),
  },
  {
    id: 'compliance',
    head: 'In order, 1 hour',
    align: 'right',
    from: 'sm',
    cell: (row) => formatShare(row.compliance),
  },
  {
    id: 'hour',
    head: 'Last hour',
    align: 'right',
    from: 'md',
    cell: ({ last_hour: { requests, failures } }) =>
      `${formatCalls(requests)}${failures > 0 ? `, ${formatNumber(failures)} failed` : ''}`,
  },
  {
    id: 'flags',
    head: 'Flags',
    from: 'md',
    cell: ({ flags }) => {
      const raised = Object.entries(flags).filter(([, count]) => count > 0);
      return raised.length === 0 ? (
        <span className="text-soft">none</span>
      ) : (
        <span className="flex flex-wrap gap-1.5">
          {raised.map(([flag, count]) => (
            <Badge key={flag} tone="warn">
              {flag.replaceAll('_', ' ')} {formatNumber(count)}
            </Badge>
          ))}
        </span>
      );
    },
  },
];

const Services = ({ services }: { readonly services: readonly OwnService[] }): ReactNode => (
  <Card title="Services" flush>
    <Table caption="Your services" columns={COLUMNS} rows={services} rowKey={({ name }) => name} />
    {services
      .filter((each) => each.last_failures.length > 0)
      .map((each) => (
        <Failures key={each.name} service={each} />
      ))}
    {services
      .filter((each) => each.left_out.length > 0)
      .map((each) => (
        <LeftOut key={each.name} service={each} />
      ))}
  </Card>
);

const Failures = ({ service: { name, last_failures: failures } }: { readonly service: OwnService }): ReactNode => (
  <div className="border-t border-line px-5 py-4">
    <p className="mb-2">
      The last failures of <span className="font-medium break-all">{name}</span>. Your service got the ids as{' '}
      <code>x-request-id</code>:
    </p>
    <ul className="grid gap-1 text-sm">
      {failures.map(({ at, request_id: id, status, reason, said }, nth) => (
        <li key={nth} className="break-words">
          <Time at={at} />{' '}
          {status === null || reason.includes(String(status)) ? reason : `${reason} (status ${status})`}
          {said === null ? '' : `: ${said}`} <span className="font-mono text-soft break-all">{id}</span>
        </li>
      ))}
    </ul>
  </div>
);

const LeftOut = ({ service: { name, left_out: leftOut } }: { readonly service: OwnService }): ReactNode => (
  <div className="border-t border-line px-5 py-4">
    <p className="mb-2">
      Clients cannot read some of what <span className="font-medium break-all">{name}</span> lists, so it is not listed
      here and cannot be called:
    </p>
    <ul className="grid gap-1 text-sm">
      {leftOut.map(({ kind, name: of, reason }, nth) => (
        <li key={nth} className="break-words">
          {kind.replaceAll('_', ' ')} <span className="font-mono">{of ?? 'without a name'}</span>: {reason}
        </li>
      ))}
    </ul>
  </div>
);

function Earned(): ReactNode {
  const [{ days }, set] = useSearchState(START);
  const span = SPANS.find(({ value }) => value === days)?.value ?? '30';
  const from = utcDay(Number(span) - 1);
  const earnings = useQuery({
    queryKey: ['earnings', from],
    queryFn: () => call(api.GET('/api/v1/provider/earnings', { params: { query: { start_date: from } } })),
  });
  return (
    <Card
      title="Earnings"
      action={<Choice label="Days" options={SPANS} chosen={span} onChoose={(value) => set({ days: value })} />}
    >
      <QueryView query={earnings} loading={<Skeleton className="h-72 w-full" />}>
        {({ available_micro_usdc, total_earned_micro_usdc, by_day, payout_terms }) => (
          <>
            <div className="mb-5 flex flex-wrap items-start justify-between gap-4">
              <dl className="flex flex-wrap gap-x-12 gap-y-4">
                <Figure name="To be paid out" value={<Money micro={available_micro_usdc} />} />
                <Figure name="Earned so far" value={<Money micro={total_earned_micro_usdc} />} />
              </dl>
              {payout_terms.networks.length > 0 && (
                <Link href="/dashboard/balance" className={buttonStyle()}>
                  Withdraw
                </Link>
              )}
            </div>
            <p className="mb-5 max-w-[65ch] text-soft">{payout_terms.summary}</p>
            {total_earned_micro_usdc === 0 ? (
              <p className="text-soft">Nothing was earned yet. Each call of your services is listed here by its day.</p>
            ) : (
              <>
                <Chart
                  title="Earnings by day, after the fee"
                  days={by_day.map(({ date }) => date)}
                  series={[{ name: 'Earned', values: by_day.map((day) => day.earned_micro_usdc), color: '--accent' }]}
                  format={formatMicroUsd}
                  stacked
                />
                <ByService days={by_day} />
              </>
            )}
          </>
        )}
      </QueryView>
    </Card>
  );
}

type Day = AnswerOf<'showWhatYouEarned'>['by_day'][number];

/** The earnings of the days by service, the highest first. */
function ByService({ days }: { readonly days: readonly Day[] }): ReactNode {
  const sums = new Map<string, { readonly calls: number; readonly micro: number }>();
  for (const { services } of days)
    for (const { service, requests, earned_micro_usdc: micro } of services) {
      const sum = sums.get(service) ?? { calls: 0, micro: 0 };
      sums.set(service, { calls: sum.calls + requests, micro: sum.micro + micro });
    }
  return (
    <dl className="figures mt-5 grid gap-x-8 gap-y-1 text-sm sm:max-w-xl">
      {[...sums]
        .toSorted(([, one], [, other]) => other.micro - one.micro)
        .map(([service, { calls, micro }]) => (
          <div key={service} className="flex justify-between gap-4">
            <dt className="min-w-0 break-all">{service}</dt>
            <dd className="whitespace-nowrap text-soft">
              {formatCalls(calls)} · <Money micro={micro} />
            </dd>
          </div>
        ))}
    </dl>
  );
}
