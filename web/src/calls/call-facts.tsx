import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { CallDetail } from '../api/own.ts';
import { Card } from '../ui/card.tsx';
import { ErrorNote } from '../ui/error-note.tsx';
import { KindMark } from '../ui/kind.tsx';
import { formatNumber } from '../ui/number.ts';
import { formatDuration, Time } from '../ui/time.tsx';
import { Flags } from './flags.tsx';
import { whyFailed } from './causes.ts';
import { Outcome } from './outcome.tsx';

/** The units of meters that count things; those of tokens have their own names. */
const COUNTED: ReadonlySet<string> = new Set(['call', 'second', 'character', 'image']);
const usedOf = (meter: string, count: number): string =>
  `${formatNumber(count)} ${meter.replaceAll('_', ' ')}${COUNTED.has(meter) && count !== 1 ? 's' : ''}`;

const tagsIn = (tags: CallDetail['tags']): string =>
  Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');

/** The facts of a call, besides its money. `keyName`: the label of its key. */
export function CallFacts({
  call,
  keyName,
  parentPage,
}: {
  readonly call: CallDetail;
  readonly keyName?: string | undefined;
  readonly parentPage: (id: string) => string;
}): ReactNode {
  const error = call.error ?? whyFailed(call);
  const usage = Object.entries(call.usage_details).filter(([, count]) => typeof count === 'number');
  const facts: readonly (readonly [string, ReactNode])[] = [
    ['Service', call.tool === null ? call.service : `${call.service} › ${call.tool}`],
    ['Provider', call.provider_name ?? (call.failed_attempts.length > 0 ? 'none answered' : '–')],
    ['Began', <Time key="began" at={call.created_at} exact />],
    ['First byte', call.latency === null ? '–' : formatDuration(call.latency)],
    ['Duration', call.generation_time === null ? '–' : formatDuration(call.generation_time)],
    ['Used', usage.map(([meter, count]) => usedOf(meter, count)).join(', ') || '–'],
    ...(Object.keys(call.tags).length === 0 ? [] : [['Tags', tagsIn(call.tags)] as const]),
    ['Finish reason', call.finish_reason ?? '–'],
    ['Key', keyName ?? (call.api_key === null ? 'no key' : `${call.api_key.slice(0, 10)}…`)],
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
      {error !== null && (
        <div className="mb-4">
          <ErrorNote error={error} title={call.failed ? 'The call failed' : 'The call ended with an error'} />
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
      <Flags flags={call.flags} claims={call.claims} />
      {call.parent !== null && (
        <p className="mt-4 text-sm text-soft">
          It was made under{' '}
          <Link href={parentPage(call.parent)} className="link">
            another call
          </Link>
          , whose lock paid it.
        </p>
      )}
    </Card>
  );
}
