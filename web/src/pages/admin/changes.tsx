import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { api, type AnswerOf, call } from '../../api/client.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { accountPage, callPage, sellerPage } from './paths.ts';

type Change = AnswerOf<'listAdminActs'>['data'][number];

const PAGE = 50;
const FIRST_PAGE: { readonly cursor?: string } = {};

/** Common changes in words, by method and path. Others are shown as they were requested. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/^POST session$/, 'Sign in'],
  [/^DELETE session$/, 'Sign out'],
  [/^POST accounts$/, 'Create an account'],
  [/^POST accounts\/([^/]+)\/credit$/, 'Credit'],
  [/^POST accounts\/([^/]+)\/debit$/, 'Debit'],
  [/^POST accounts\/([^/]+)\/freeze$/, 'Freeze'],
  [/^POST accounts\/([^/]+)\/unfreeze$/, 'Unfreeze'],
  [/^POST accounts\/([^/]+)\/close$/, 'Close'],
  [/^POST accounts\/([^/]+)\/reopen$/, 'Reopen'],
  [/^POST accounts\/([^/]+)\/notes$/, 'Write a note on'],
  [/^PATCH accounts\/([^/]+)$/, 'Rename'],
  [/^PATCH accounts\/([^/]+)\/limits$/, 'Change the limits of'],
  [/^POST accounts\/([^/]+)\/keys$/, 'Make a key for'],
  [/^PATCH accounts\/([^/]+)\/keys\//, 'Change a key of'],
  [/^DELETE accounts\/([^/]+)\/keys\//, 'Revoke a key of'],
  [/^POST accounts\/([^/]+)\/members$/, 'Add a member to'],
  [/^PATCH accounts\/([^/]+)\/members\//, 'Change a member of'],
  [/^DELETE accounts\/([^/]+)\/members\//, 'Remove a member of'],
  [/^DELETE accounts\/([^/]+)\/notes\//, 'Delete a note on'],
  [/^POST reconciliation\/results$/, 'Keep a comparison with a vendor'],
  [/^POST deposits\/([^/]+)\/attribute$/, 'Attribute the deposit'],
  [/^POST providers\/([^/]+)\/payouts\/undo$/, 'Take back a payout to'],
  [/^POST withdrawals$/, 'Withdraw fees'],
  [/^POST archives$/, 'Archive old calls'],
  [/^POST calls\/([^/]+)\/refund$/, 'Refund the call'],
  [/^POST calls\/([^/]+)\/end$/, 'End the call'],
  [/^POST providers\/([^/]+)\/ban$/, 'Ban'],
  [/^DELETE providers\/([^/]+)\/ban$/, 'Unban'],
  [/^POST providers\/([^/]+)\/payouts$/, 'Book a payout to'],
  [/^POST admin-keys$/, 'Make an admin key'],
  [/^DELETE admin-keys\/([^/]+)$/, 'Revoke the admin key'],
  [/^POST services\/test$/, 'Make a test call'],
  [/^POST reload$/, 'Reload the configuration'],
  [/^POST analytics\/rebuild$/, 'Make the figures anew'],
];

const unescaped = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const textOf = (value: unknown): string => {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(Number(value.toFixed(6)));
  // The objects of a list, such as the models of a comparison, would fill the page. The log has them.
  if (Array.isArray(value) && value.some((each) => typeof each === 'object')) return `${value.length} of them`;
  return JSON.stringify(value);
};

/** The members of a request, such as `amount_usd: 40, reference: invoice-1`. What is no object stays as it is. */
function membersOf(body: string): string {
  try {
    return Object.entries(JSON.parse(body) as object)
      .map(([name, value]) => `${name}: ${textOf(value)}`)
      .join(', ');
  } catch {
    return body;
  }
}

/** The pages of what a change was about. */
const PAGES: Readonly<Record<string, (id: string) => string>> = {
  accounts: accountPage,
  providers: sellerPage,
  calls: (id) => callPage('', id),
};

function Subject({ request, id }: { readonly request: string; readonly id: string }): ReactNode {
  const page = PAGES[/^[A-Z]+ (\w+)/.exec(request)?.[1] ?? ''];
  if (page === undefined) return <span className="wrap-anywhere">{id}</span>;
  return (
    <Link href={page(id)} className="wrap-anywhere hover:underline">
      {id}
    </Link>
  );
}

/** A change in words, and its subject. */
function Words({ of: { method, path } }: { readonly of: Change }): ReactNode {
  const request = `${method} ${path.replace(/^\/admin\/v1\//, '').replace(/\?.*$/, '')}`;
  for (const [form, words] of WORDS) {
    const found = form.exec(request);
    if (found === null) continue;
    return (
      <>
        <span className="font-medium">{words}</span>{' '}
        {found[1] !== undefined && <Subject request={request} id={unescaped(found[1])} />}
      </>
    );
  }
  return <span className="font-mono text-sm break-all">{unescaped(request)}</span>;
}

const actorOf = ({ actor, label }: Change): string => label ?? (actor === 'root' ? 'the admin key' : actor);

const COLUMNS: readonly Column<Change>[] = [
  {
    id: 'change',
    head: 'Change',
    cell: (row) => (
      <>
        <Words of={row} />
        {row.body !== null && row.body !== '' && row.body !== '{}' && (
          <span className="mt-0.5 block text-sm wrap-anywhere text-soft">{membersOf(row.body)}</span>
        )}
        <span className="mt-0.5 block text-sm wrap-anywhere text-soft sm:hidden">by {actorOf(row)}</span>
      </>
    ),
  },
  {
    id: 'actor',
    head: 'By',
    from: 'sm',
    cell: (row) => (
      <>
        <span className="block min-w-28 wrap-anywhere">{actorOf(row)}</span>
        <span className="block text-xs text-soft">{row.address}</span>
      </>
    ),
  },
  {
    id: 'status',
    head: 'Result',
    cell: ({ status }) =>
      status === null ? (
        <Badge tone="warn">unknown</Badge>
      ) : (
        <Badge tone={status < 400 ? 'plain' : 'bad'}>{status < 400 ? 'done' : `refused, ${status}`}</Badge>
      ),
  },
  { id: 'at', head: 'When', align: 'right', cell: ({ at }) => (at === null ? '–' : <When at={at} />) },
];

const When = ({ at }: { readonly at: string }): ReactNode => (
  <>
    <Time at={at} />
    <span className="block text-xs text-soft max-sm:hidden">
      <Time at={at} exact />
    </span>
  </>
);

/** The log of changes by administrators. */
export default function Changes(): ReactNode {
  const changes = useInfiniteQuery({
    queryKey: ['admin', 'changes'],
    queryFn: ({ pageParam }) =>
      call(api.GET('/admin/v1/audit-log', { params: { query: { limit: PAGE, ...pageParam } } })),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: ({ next_cursor }) => (next_cursor === null ? null : { cursor: next_cursor }),
  });
  return (
    <Card
      title="Changes by administrators"
      flush
      action={
        <Button size="small" busy={changes.isRefetching} onClick={() => void changes.refetch()}>
          Read again
        </Button>
      }
    >
      <QueryView query={changes}>
        {({ pages }) => (
          <Table
            caption="Changes by administrators"
            columns={COLUMNS}
            rows={pages.flatMap((page) => page.data)}
            rowKey={({ id }) => id}
            empty={
              <Empty
                title="No change yet"
                text="Every change by an admin key or a command is here, refused ones too."
              />
            }
          />
        )}
      </QueryView>
      {changes.hasNextPage && (
        <div className="flex justify-center border-t border-line py-3">
          <Button busy={changes.isFetchingNextPage} onClick={() => void changes.fetchNextPage()}>
            Older changes
          </Button>
        </div>
      )}
    </Card>
  );
}
