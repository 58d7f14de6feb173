import { useQuery } from '@tanstack/react-query';
import { useMemo, useState, type ReactNode } from 'react';
import { AccountName } from '../../account/account-name.tsx';
import { api, data, type Schemas } from '../../api/client.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Money } from '../../ui/money.tsx';
import { formatNumber } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { formatUsd, MICRO } from '../../ui/usd.ts';
import { ACCOUNTS } from './account.ts';
import { KeyActs } from './account-key.tsx';

type Key = Schemas['ApiKey'];
type Member = Schemas['Member'];

const PAGE = 50;

const keyColumns = (account: string): readonly Column<Key>[] => [
  {
    id: 'name',
    head: 'Key',
    cell: (row) => (
      <>
        <span className="font-medium">{row.name}</span>
        <span className="block font-mono text-xs text-soft">{row.hash.slice(0, 12)}…</span>
      </>
    ),
  },
  { id: 'state', head: 'State', from: 'sm', cell: (row) => <KeyState of={row} /> },
  {
    id: 'limit',
    head: 'Limit',
    align: 'right',
    from: 'sm',
    cell: ({ limit, limit_reset: reset, requests_per_minute: rate }) => (
      <>
        {limit === null ? '–' : formatUsd(limit)}
        {limit !== null && <span className="block text-sm text-soft">{reset ?? 'in all'}</span>}
        {rate !== null && <span className="block text-sm text-soft">{formatNumber(rate)} a minute</span>}
      </>
    ),
  },
  {
    id: 'usage',
    head: 'Spent',
    align: 'right',
    cell: ({ usage }) => <Money micro={Math.round(usage * MICRO)} />,
  },
  {
    id: 'acts',
    head: <span className="sr-only">Changes</span>,
    align: 'right',
    cell: (row) => <KeyActs account={account} of={row} />,
  },
];

const isPast = (at: string): boolean => Date.parse(at) <= Date.now();

function KeyState({ of }: { readonly of: Key }): ReactNode {
  if (of.disabled) return <Badge tone="warn">disabled</Badge>;
  if (of.expires_at === null) return <Badge>active</Badge>;
  if (isPast(of.expires_at)) return <Badge tone="warn">expired</Badge>;
  return (
    <span className="text-sm">
      until <Time at={of.expires_at} />
    </span>
  );
}

const MEMBERS: readonly Column<Member>[] = [
  {
    id: 'member',
    head: 'Member',
    cell: ({ account, name }) => (
      <>
        <span className="font-medium">{name === '' ? <AccountName account={account} /> : name}</span>
        {name !== '' && <span className="block font-mono text-xs break-all text-soft">{account}</span>}
      </>
    ),
  },
  { id: 'role', head: 'Role', cell: ({ role }) => <Badge>{role}</Badge> },
];

/** The keys of an account, and its members. */
export function AccountPeople({ id }: { readonly id: string }): ReactNode {
  const [offset, setOffset] = useState(0);
  const keys = useQuery({
    queryKey: [...ACCOUNTS, 'keys', id, offset],
    queryFn: () =>
      data(api.GET('/admin/v1/accounts/{id}/keys', { params: { path: { id }, query: { limit: PAGE, offset } } })),
  });
  const members = useQuery({
    queryKey: [...ACCOUNTS, 'members', id],
    queryFn: () => data(api.GET('/admin/v1/accounts/{id}/members', { params: { path: { id } } })),
  });
  const columns = useMemo(() => keyColumns(id), [id]);
  return (
    <div className="grid min-w-0 gap-5">
      <Card title="Keys" flush>
        <QueryView query={keys}>
          {(rows) => (
            <Table
              caption="Keys"
              columns={columns}
              rows={rows}
              rowKey={({ hash }) => hash}
              empty={
                <Empty
                  title="No key"
                  text={
                    <>
                      Its owner has made none, or signs in with a wallet. <code>tollgate key create {id}</code> makes
                      one.
                    </>
                  }
                />
              }
            />
          )}
        </QueryView>
        {(offset > 0 || keys.data?.length === PAGE) && (
          <div className="flex justify-center gap-2 border-t border-line py-3">
            {offset > 0 && <Button onClick={() => setOffset(Math.max(0, offset - PAGE))}>Earlier keys</Button>}
            {keys.data?.length === PAGE && <Button onClick={() => setOffset(offset + PAGE)}>More keys</Button>}
          </div>
        )}
      </Card>
      {members.data !== undefined && members.data.length > 0 && (
        <Card title="Members" flush>
          <Table caption="Members" columns={MEMBERS} rows={members.data} rowKey={({ account }) => account} />
        </Card>
      )}
    </div>
  );
}
