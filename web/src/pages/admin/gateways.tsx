import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, data, type Schemas } from '../../api/client.ts';
import { Badge } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { formatNumber } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

export type Gateway = Schemas['GatewayState'];
type Alert = Gateway['alerts'][number];

const STATES: Readonly<Record<Gateway['state'], readonly [text: string, tone: 'good' | 'warn' | 'bad']>> = {
  ready: ['ready', 'good'],
  not_ready: ['refuses calls', 'bad'],
  stopping: ['stopping', 'warn'],
  silent: ['silent', 'bad'],
};

function GatewayBadge({ of: { state } }: { readonly of: Gateway }): ReactNode {
  const [text, tone] = STATES[state];
  return <Badge tone={tone}>{text}</Badge>;
}

/** Whether a gateway runs another version than the one that started last: an upgrade is under way, or forgot it. */
const isOlder = ({ version, state }: Gateway, gateways: readonly Gateway[]): boolean => {
  const newest = gateways.reduce((one, other) => (other.started_at > one.started_at ? other : one));
  return state !== 'silent' && version !== newest.version;
};

/** The version of a gateway, with a mark on one that differs from the newest. */
function Version({ of, among }: { readonly of: Gateway; readonly among: readonly Gateway[] }): ReactNode {
  return (
    <span className="flex flex-wrap items-center gap-2">
      <span className="figures">{of.version}</span>
      {isOlder(of, among) && <Badge tone="warn">not the newest</Badge>}
    </span>
  );
}

/** The parts of a gateway that do not work. */
export const problemsOf = ({ checks }: Gateway): readonly string[] =>
  Object.entries(checks).flatMap(([part, state]) => (state === 'ok' ? [] : [`The ${part} ${state}.`]));

const MEBI = 1024 * 1024;

const columnsOf = (gateways: readonly Gateway[]): readonly Column<Gateway>[] => [
  {
    id: 'gateway',
    head: 'Process',
    cell: (row) => (
      <>
        <span className="font-medium">{row.host}</span> <span className="figures text-sm text-soft">{row.pid}</span>
      </>
    ),
  },
  { id: 'state', head: 'State', cell: (row) => <GatewayBadge of={row} /> },
  { id: 'version', head: 'Version', from: 'sm', cell: (row) => <Version of={row} among={gateways} /> },
  { id: 'since', head: 'Started', from: 'md', cell: (row) => <Time at={row.started_at} /> },
  { id: 'running', head: 'Running calls', align: 'right', from: 'md', cell: (row) => formatNumber(row.in_flight) },
];

/** The processes of all gateways, in a line each. */
export function GatewayTable({ gateways }: { readonly gateways: readonly Gateway[] }): ReactNode {
  return (
    <Table
      caption="Gateways"
      columns={columnsOf(gateways)}
      rows={gateways}
      rowKey={({ id }) => id}
      empty={<Empty title="No gateway has reported" text="Each reports every half minute." />}
    />
  );
}

export function AlertList({ alerts }: { readonly alerts: readonly Alert[] }): ReactNode {
  return (
    <ul className="divide-y divide-line">
      {alerts.map((alert) => (
        <li key={`${alert.message} ${alert.subject}`} className="flex flex-wrap items-baseline gap-x-3 gap-y-1 py-2.5">
          <Badge tone={alert.level === 'warn' || alert.level === 'info' ? 'warn' : 'bad'}>{alert.level}</Badge>
          <span className="min-w-0 flex-1 basis-52 break-words">
            <span className="inline-block first-letter:uppercase">{alert.message}</span>
            {alert.subject !== '' && <span className="text-soft"> – {alert.subject}</span>}
          </span>
          <span className="text-sm whitespace-nowrap text-soft">
            {alert.count > 1 && `${formatNumber(alert.count)} times, last `}
            <Time at={alert.last_at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The health of each gateway: what it checks, and what it warned of. */
export default function Gateways(): ReactNode {
  const gateways = useQuery({
    queryKey: ['admin', 'gateways'],
    queryFn: () => data(api.GET('/admin/v1/gateways')),
    refetchInterval: 10_000,
  });
  return (
    <QueryView query={gateways}>
      {(rows) => (
        <div className="grid gap-5">
          {rows.map((row) => (
            <OneGateway key={row.id} gateway={row} among={rows} />
          ))}
          <p className="text-sm text-soft">
            Each process reports every half minute. Metrics for Prometheus are at <code>/metrics</code>. The log of a
            gateway has every refused call and every error.
          </p>
        </div>
      )}
    </QueryView>
  );
}

function OneGateway({ gateway, among }: { readonly gateway: Gateway; readonly among: readonly Gateway[] }): ReactNode {
  const facts: Readonly<Record<string, ReactNode>> = {
    Version: <Version of={gateway} among={among} />,
    Started: <Time at={gateway.started_at} exact />,
    Reported: <Time at={gateway.reported_at} />,
    'Running calls': formatNumber(gateway.in_flight),
    Memory: `${formatNumber(Math.round(gateway.memory_bytes / MEBI))} MiB`,
  };
  return (
    <Card
      title={
        <span className="flex flex-wrap items-center gap-2">
          <span className="break-all">
            {gateway.host} <span className="figures font-normal text-soft">{gateway.pid}</span>
          </span>
          <GatewayBadge of={gateway} />
        </span>
      }
      action={gateway.answers && <span className="text-sm text-soft">answers this page</span>}
    >
      <div className="grid gap-x-10 gap-y-5 md:grid-cols-2">
        <dl className="grid content-start gap-y-2.5">
          {Object.entries(facts).map(([name, value]) => (
            <div key={name} className="grid grid-cols-[9rem_minmax(0,1fr)] gap-4">
              <dt className="text-soft">{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        <dl className="grid content-start gap-y-2.5">
          {Object.entries(gateway.checks).map(([name, state]) => (
            <div key={name} className="grid grid-cols-[9rem_minmax(0,1fr)] gap-4">
              <dt className="text-soft first-letter:uppercase">{name}</dt>
              <dd className={state === 'ok' ? '' : 'text-bad'}>{state}</dd>
            </div>
          ))}
        </dl>
      </div>
      <h3 className="mt-6 mb-1 text-sm font-medium text-soft">Alerts of the last day</h3>
      {gateway.alerts.length === 0 ? <p>None.</p> : <AlertList alerts={gateway.alerts} />}
      <p className="mt-1 text-sm text-soft">
        It has started <Time at={gateway.started_at} exact />, and remembers none of before.
      </p>
    </Card>
  );
}
