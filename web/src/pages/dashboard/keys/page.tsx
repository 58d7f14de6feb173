import { useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { BOOT } from '../../../app/boot.ts';
import { useMembers } from '../../../api/organisation.ts';
import { type ApiKey, findCalls, useKeys } from '../../../api/own.ts';
import { Badge } from '../../../ui/badge.tsx';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { formatUsd } from '../../../ui/usd.ts';
import { QueryView } from '../../../ui/query-view.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { Time } from '../../../ui/time.tsx';
import { Frame } from '../frame.tsx';
import { EditKey } from './edit-key.tsx';
import { NewKey } from './new-key.tsx';

export default function KeysPage(): ReactNode {
  const [making, setMaking] = useState(false);
  return (
    <Frame
      title="Keys"
      lead="A key lets a program call in your name. Give each program its own, with a limit."
      action={({ rights }) =>
        rights === 'full' && (
          <Button tone="primary" onClick={() => setMaking(true)}>
            <Plus size={16} aria-hidden />
            New key
          </Button>
        )
      }
    >
      {({ rights }) => (
        <>
          <Keys changeable={rights === 'full'} onNew={() => setMaking(true)} />
          <NewKey open={making} onClose={() => setMaking(false)} />
          <Assistants />
        </>
      )}
    </Frame>
  );
}

/** Leads to the page for programs that take no key. Nothing on a gateway where none can sign in. */
function Assistants(): ReactNode {
  if (!BOOT.authorization) return null;
  return (
    <p className="mt-5 text-soft">
      Claude, ChatGPT, an editor or another MCP client needs no key:{' '}
      <Link href="/dashboard/connect" className="font-medium text-ink underline">
        connect it
      </Link>
      .
    </p>
  );
}

function Keys({ changeable, onNew }: { readonly changeable: boolean; readonly onNew: () => void }): ReactNode {
  const keys = useKeys();
  const [changed, setChanged] = useState<string | null>(null);
  const members = useMembers(keys.data?.some(({ member }) => member !== null) === true);
  const nameOf = (member: string) => members.data?.find(({ account }) => account === member)?.name ?? member;
  const columns: readonly Column<ApiKey>[] = [
    {
      id: 'name',
      head: 'Name',
      cell: (key) => (
        <div className="min-w-0">
          <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
            <span className="font-medium">{key.label}</span>
            <State of={key} />
          </p>
          <p className="text-sm text-soft">
            {key.client === null ? 'made' : 'signed in'} <Time at={key.created_at} />
            {key.member !== null && ` by ${nameOf(key.member)}`}
            {key.client !== null && (
              <>
                {', '}
                <span className="wrap-anywhere">{key.client}</span>
              </>
            )}
          </p>
          <div className="figures mt-1 max-w-44 sm:hidden">
            <span className="text-sm text-soft">Spent</span> <Spent of={key} />
          </div>
        </div>
      ),
    },
    { id: 'spent', head: 'Spent', align: 'right', from: 'sm', cell: (key) => <Spent of={key} /> },
    {
      id: 'services',
      head: 'Services',
      from: 'md',
      cell: (key) => (
        <span title={key.allowed_services?.join(', ')}>
          {key.allowed_services === null
            ? 'All'
            : key.allowed_services.length === 1
              ? key.allowed_services[0]
              : `${key.allowed_services.length} patterns`}
        </span>
      ),
    },
    {
      id: 'used',
      head: 'Last used',
      from: 'sm',
      cell: (key) => ((keys.data?.length ?? 0) > LAST_USED_MAX ? '–' : <LastUsed hash={key.hash} />),
    },
    ...(changeable
      ? [
          {
            id: 'change',
            head: <span className="sr-only">Change</span>,
            align: 'right',
            cell: (key: ApiKey) => (
              <Button size="small" aria-label={`Change ${key.label}`} onClick={() => setChanged(key.hash)}>
                Change
              </Button>
            ),
          } as const,
        ]
      : []),
  ];
  return (
    <>
      <Card flush>
        <QueryView query={keys}>
          {(rows) => (
            <Table
              caption="Keys"
              columns={columns}
              rows={rows}
              rowKey={({ hash }) => hash}
              empty={
                <Empty
                  heading="h2"
                  title="No key yet"
                  text="Make one to call from your own code, or from a client such as Claude Code."
                  action={
                    <Button tone="primary" onClick={onNew}>
                      New key
                    </Button>
                  }
                />
              }
            />
          )}
        </QueryView>
      </Card>
      <EditKey of={keys.data?.find(({ hash }) => hash === changed) ?? null} onClose={() => setChanged(null)} />
    </>
  );
}

const isPast = (at: string): boolean => Date.parse(at) <= Date.now();

function State({ of }: { readonly of: ApiKey }): ReactNode {
  if (of.disabled) return <Badge tone="warn">Disabled</Badge>;
  if (of.expires_at === null) return of.development ? <Badge>Play money</Badge> : null;
  return isPast(of.expires_at) ? (
    <Badge tone="warn">Expired</Badge>
  ) : (
    <Badge>
      until&nbsp;
      <Time at={of.expires_at} />
    </Badge>
  );
}

const PERIODS = { daily: 'today', weekly: 'this week', monthly: 'this month' } as const;

function Spent({ of }: { readonly of: ApiKey }): ReactNode {
  if (of.limit === null || of.limit_remaining === null) return formatUsd(of.usage);
  // What the limit has counted. This may be less than the period's spending, because the limit may have been set later.
  const counted = of.limit - of.limit_remaining;
  const share = of.limit === 0 ? 1 : Math.min(1, counted / of.limit);
  return (
    <div className="ml-auto max-w-44">
      {formatUsd(counted)} <span className="text-soft">of {formatUsd(of.limit)}</span>
      <span aria-hidden className="mt-1 block h-1.5 overflow-hidden rounded-full bg-sunk">
        <span
          className={`block h-full rounded-full ${share >= 0.9 ? 'bg-bad' : 'bg-accent'}`}
          style={{ width: `${share * 100}%` }}
        />
      </span>
      <span className="text-xs text-soft">{of.limit_reset === null ? 'in all' : PERIODS[of.limit_reset]}</span>
    </div>
  );
}

/** If the account has more keys than this, no key shows its last use, because each key needs its own request. */
const LAST_USED_MAX = 30;

/** Shows when the last call with a key began. */
function LastUsed({ hash }: { readonly hash: string }): ReactNode {
  const { data } = useQuery({
    queryKey: ['last-call', hash],
    queryFn: () => findCalls({ key: hash, limit: 1 }),
    staleTime: 60_000,
  });
  const last = data?.data[0];
  if (last !== undefined) return <Time at={last.created_at} />;
  // The account has made more calls since then than one request reads.
  return data === undefined ? ' ' : data.next_cursor === null ? 'never' : 'long ago';
}
