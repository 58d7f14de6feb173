import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { type CallDetail, useCall, useKeys } from '../../../api/own.ts';
import { CallTree } from '../../../calls/call-tree.tsx';
import { MoneyLines } from '../../../calls/money-lines.tsx';
import { Outcome } from '../../../calls/outcome.tsx';
import { Badge } from '../../../ui/badge.tsx';
import { Card } from '../../../ui/card.tsx';
import { Copy } from '../../../ui/copy.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { KindMark } from '../../../ui/kind.tsx';
import { formatUsd } from '../../../ui/usd.ts';
import { formatNumber } from '../../../ui/number.ts';
import { QueryView } from '../../../ui/query-view.tsx';
import { formatDuration, Time } from '../../../ui/time.tsx';
import { Frame } from '../frame.tsx';
import { ReceiptCard } from './receipt-card.tsx';

export default function CallPage({ params }: { readonly params: Readonly<Record<string, string>> }): ReactNode {
  const id = decodeURIComponent(params['id'] ?? '');
  return (
    <Frame
      title="Call"
      above={
        <Link href="/dashboard/calls" className="link">
          All calls
        </Link>
      }
      lead={
        <span className="flex items-center gap-1 font-mono text-sm break-all">
          {id} <Copy text={id} label="Copy the id of the call" />
        </span>
      }
    >
      {() => <Detail id={id} />}
    </Frame>
  );
}

function Detail({ id }: { readonly id: string }): ReactNode {
  return (
    <QueryView query={useCall(id)}>
      {(call) => (
        <div className="grid items-start gap-5 xl:grid-cols-2">
          <Facts call={call} />
          <Card title="Money">
            <MoneyLines call={call} />
          </Card>
          {call.children.length > 0 && (
            <Card
              title="Calls under this call"
              action={<span className="text-sm text-soft">{formatUsd(call.run_cost)} in all</span>}
            >
              <CallTree call={call} />
            </Card>
          )}
          <ReceiptCard call={call} />
        </div>
      )}
    </QueryView>
  );
}

/** The units of meters that count things; those of tokens have their own names. */
const COUNTED: ReadonlySet<string> = new Set(['call', 'second', 'character', 'image']);
const usedOf = (meter: string, count: number): string =>
  `${formatNumber(count)} ${meter.replaceAll('_', ' ')}${COUNTED.has(meter) && count !== 1 ? 's' : ''}`;

function Facts({ call }: { readonly call: CallDetail }): ReactNode {
  const key = useKeys().data?.find(({ hash }) => hash === call.api_key);
  const usage = Object.entries(call.usage_details).filter(([, count]) => typeof count === 'number');
  const facts: readonly (readonly [string, ReactNode])[] = [
    ['Service', call.tool === null ? call.service : `${call.service} › ${call.tool}`],
    ['Provider', call.provider_name ?? '–'],
    ['Began', <Time key="began" at={call.created_at} exact />],
    ['First byte', call.latency === null ? '–' : formatDuration(call.latency)],
    ['Duration', call.generation_time === null ? '–' : formatDuration(call.generation_time)],
    ['Used', usage.map(([meter, count]) => usedOf(meter, count)).join(', ') || '–'],
    ['Finish reason', call.finish_reason ?? '–'],
    ['Key', key?.label ?? (call.api_key === null ? 'no key' : `${call.api_key.slice(0, 10)}…`)],
    [
      'Request',
      <span key="request" className="font-mono text-sm break-all">
        {call.request_id}
      </span>,
    ],
  ];
  return (
    <Card
      title={
        <span className="flex items-center gap-3">
          <KindMark kind={call.primitive} />
          <Outcome of={call} />
        </span>
      }
    >
      {call.error !== null && (
        <div className="mb-4">
          <ErrorNote error={call.error} title="The call failed" />
        </div>
      )}
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-2 sm:gap-x-6">
        {facts.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-soft">{name}</dt>
            <dd className="figures break-words">{value}</dd>
          </div>
        ))}
      </dl>
      {call.flags.length > 0 && (
        <p className="mt-4 flex flex-wrap gap-2">
          {call.flags.map((flag) => (
            <Badge key={flag} tone="warn">
              {flag.replaceAll('_', ' ')}
            </Badge>
          ))}
        </p>
      )}
      {call.parent !== null && (
        <p className="mt-4 text-sm text-soft">
          It was made under{' '}
          <Link href={`/dashboard/calls/${encodeURIComponent(call.parent)}`} className="link">
            another call
          </Link>
          , whose lock paid it.
        </p>
      )}
    </Card>
  );
}
