import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { stayAway } from '../../../account/local-developer.ts';
import { type AnswerOf, api, call, data } from '../../../api/client.ts';
import { useSession } from '../../../api/session.ts';
import { Badge } from '../../../ui/badge.tsx';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { Time } from '../../../ui/time.tsx';
import { Frame } from '../frame.tsx';
import { browserName } from './browser-name.ts';

type OpenSession = AnswerOf<'listYourSessions'>['data'][number];

const WAYS = { wallet: 'Wallet', api_key: 'API key', development: 'Local developer', person: 'Company' } as const;

export default function SessionsPage(): ReactNode {
  return (
    <Frame
      title="Sessions"
      lead="Browsers that are signed in to your account. End a session that you do not recognise."
    >
      {() => <Sessions />}
    </Frame>
  );
}

function Sessions(): ReactNode {
  const queries = useQueryClient();
  const { changed } = useSession();
  const [, navigate] = useLocation();
  const sessions = useQuery({
    queryKey: ['sessions'],
    queryFn: () => data(api.GET('/api/v1/auth/sessions')),
    refetchInterval: 30_000,
  });
  const end = useMutation({
    mutationFn: async (session: OpenSession | null): Promise<unknown> =>
      session === null
        ? call(api.DELETE('/api/v1/auth/session', { params: { query: { all: true } } }))
        : call(api.DELETE('/api/v1/auth/sessions/{id}', { params: { path: { id: session.id } } })),
    onSuccess: async (_answer, session) => {
      if (session !== null && !session.current) return queries.invalidateQueries({ queryKey: ['sessions'] });
      stayAway(true);
      changed(null);
      navigate('/sign-in');
    },
  });
  const columns: readonly Column<OpenSession>[] = [
    {
      id: 'browser',
      head: 'Browser',
      cell: (row) => (
        <div>
          <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1" title={row.client}>
            <span className="font-medium">{browserName(row.client)}</span>
            {row.current && <Badge tone="good">This browser</Badge>}
          </p>
          {/* A phone shows no other column, and several sessions may have the same browser. */}
          <p className="text-sm text-soft sm:hidden">
            {WAYS[row.signed_in_by]}, used <Time at={row.seen_at} />, signed in <Time at={row.created_at} />
            {row.network !== null && <> from {row.network}</>}
          </p>
        </div>
      ),
    },
    { id: 'by', head: 'Signed in by', from: 'sm', cell: (row) => WAYS[row.signed_in_by] },
    { id: 'since', head: 'Signed in', from: 'xl', cell: (row) => <Time at={row.created_at} /> },
    {
      id: 'from',
      head: 'From',
      from: 'md',
      cell: (row) => <span className="text-soft">{row.network ?? 'not known'}</span>,
    },
    { id: 'seen', head: 'Last used', from: 'sm', cell: (row) => <Time at={row.seen_at} /> },
    { id: 'ends', head: 'Ends', from: 'xl', cell: (row) => <Time at={row.expires_at} /> },
    {
      id: 'end',
      head: <span className="sr-only">End</span>,
      align: 'right',
      cell: (row) => (
        <Button size="small" busy={end.isPending && end.variables?.id === row.id} onClick={() => end.mutate(row)}>
          {row.current ? 'Sign out' : 'End'}
        </Button>
      ),
    },
  ];
  return (
    <div className="grid gap-4">
      {end.error !== null && <ErrorNote error={end.error} />}
      <Card flush>
        <QueryView query={sessions}>
          {(rows) => <Table caption="Sessions" columns={columns} rows={rows} rowKey={({ id }) => id} />}
        </QueryView>
      </Card>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <p className="max-w-[60ch] text-sm text-soft">
          A session ends after 12 hours without use, or 7 days after the sign-in, unless the operator chose other times.
        </p>
        <Button tone="danger" busy={end.isPending && end.variables === null} onClick={() => end.mutate(null)}>
          Sign out everywhere
        </Button>
      </div>
    </div>
  );
}
