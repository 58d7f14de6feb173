import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { api, call, data } from '../../api/client.ts';
import { type CallRow, type OwnFigures, utcDay } from '../../api/own.ts';
import { CallsTable } from '../../calls/calls-table.tsx';
import { AccountName } from '../../account/account-name.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card, Figure } from '../../ui/card.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Field } from '../../ui/field.tsx';
import { KIND_NAMES } from '../../ui/kinds.ts';
import { Money } from '../../ui/money.tsx';
import { formatNumber, formatShort } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { ACCOUNTS, type Account } from './account.ts';
import { AccountChanges } from './account-changes.tsx';
import { AccountLimits } from './account-limits.tsx';
import { AccountNotes } from './account-notes.tsx';
import { AccountPeople } from './account-people.tsx';
import { CreditForm } from './credit-form.tsx';

/** An account: its money, what it used, and its calls. `pageOf`: the address of a call. */
export function AccountPage({
  id,
  pageOf,
}: {
  readonly id: string;
  readonly pageOf: (call: string) => string;
}): ReactNode {
  const account = useQuery({
    queryKey: [...ACCOUNTS, 'one', id],
    queryFn: () => data(api.GET('/admin/v1/accounts/{id}', { params: { path: { id } } })),
  });
  return (
    <QueryView query={account}>
      {(found) => (
        <div className="grid gap-5">
          <Summary account={found} />
          <div className="grid items-start gap-5 lg:grid-cols-2">
            <AccountLimits account={found} />
            <AccountNotes account={found} />
          </div>
          <Usage id={found.id} />
          <Calls id={found.id} pageOf={pageOf} />
          <AccountPeople id={found.id} />
        </div>
      )}
    </QueryView>
  );
}

function Summary({ account }: { readonly account: Account }): ReactNode {
  const [open, setOpen] = useState<'credit' | 'change' | null>(null);
  const { movements_micro_usdc: moved, total_usage_micro_usdc: used = 0, provider } = account;
  const close = () => setOpen(null);
  const figures: readonly (readonly [string, number | undefined])[] = [
    ['Balance', account.balance_micro_usdc],
    ['Locked', account.locked_micro_usdc],
    ['Used', used],
    ['Credited', moved?.credited],
    ['Debited', moved?.debited],
    ['Refunded', moved?.refunded],
    ['Earnings', provider?.earnings_micro_usdc],
  ];
  return (
    <Card
      title={
        <span className="flex flex-wrap items-center gap-2">
          {account.label === '' ? <AccountName account={account.id} /> : account.label}
          {account.state !== 'open' && (
            <Badge tone={account.state === 'frozen' ? 'warn' : 'bad'}>{account.state}</Badge>
          )}
        </span>
      }
      action={
        <span className="flex gap-2">
          <Button size="small" onClick={() => setOpen('credit')}>
            Credit
          </Button>
          <Button size="small" onClick={() => setOpen('change')}>
            Change
          </Button>
        </span>
      }
    >
      <p className="mb-4 font-mono text-xs break-all text-soft">{account.id}</p>
      <dl className="grid grid-cols-2 gap-6 md:grid-cols-4">
        {figures.map(
          ([name, micro]) => micro !== undefined && <Figure key={name} name={name} value={<Money micro={micro} />} />,
        )}
      </dl>
      <Dialog title="Credit an account" open={open === 'credit'} onClose={close}>
        {open === 'credit' && <CreditForm account={account} onDone={close} />}
      </Dialog>
      <Dialog title="Change an account" open={open === 'change'} onClose={close}>
        {open === 'change' && <AccountChanges id={account.id} onDone={close} />}
      </Dialog>
    </Card>
  );
}

/** How the figures can be grouped, and of how many days they are. */
const GROUPS = [
  { value: 'month', text: 'Month', days: 365 },
  { value: 'model', text: 'Service', days: 30 },
  { value: 'key', text: 'Key', days: 30 },
  { value: 'provider', text: 'Provider', days: 30 },
  { value: 'primitive', text: 'Kind', days: 30 },
] as const;
type Group = (typeof GROUPS)[number]['value'];

const NAME: Readonly<Record<Group, (row: OwnFigures) => string>> = {
  month: ({ month }) => month ?? '–',
  model: ({ model }) => model ?? '–',
  key: ({ key, key_label }) => key_label ?? (key == null ? 'Without a key' : `${key.slice(0, 8)}…`),
  provider: ({ provider_name, provider }) => provider_name ?? provider ?? 'Nobody served',
  primitive: ({ primitive }) => (primitive === undefined ? '–' : KIND_NAMES[primitive].many),
};

function Usage({ id }: { readonly id: string }): ReactNode {
  const [by, setBy] = useState<Group>('month');
  const group = GROUPS.find(({ value }) => value === by)!;
  const usage = useQuery({
    queryKey: [...ACCOUNTS, 'usage', id, by],
    queryFn: () =>
      call(
        api.GET('/admin/v1/accounts/{id}/usage', {
          params: { path: { id }, query: { group_by: by, start_date: utcDay(group.days) } },
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  const columns: readonly Column<OwnFigures>[] = [
    { id: 'name', head: group.text, cell: (row) => <span className="font-medium break-words">{NAME[by](row)}</span> },
    { id: 'requests', head: 'Requests', align: 'right', cell: ({ requests }) => formatNumber(requests) },
    {
      id: 'failed',
      head: 'Failed',
      align: 'right',
      from: 'md',
      cell: ({ failed }) => (failed === 0 ? '–' : formatNumber(failed)),
    },
    {
      id: 'tokens',
      head: 'Tokens',
      align: 'right',
      from: 'sm',
      cell: ({ total_tokens }) => (total_tokens === 0 ? '–' : formatShort(total_tokens)),
    },
    { id: 'spend', head: 'Spend', align: 'right', cell: (row) => <Money micro={row.cost_micro_usdc} /> },
  ];
  return (
    <Card
      title={by === 'month' ? 'What it used, by month' : `What it used in ${group.days} days`}
      flush
      action={<Choice label="Grouped by" options={GROUPS} chosen={by} onChoose={setBy} />}
    >
      <QueryView query={usage}>
        {({ data: rows }) => {
          const shown = rows.filter(({ requests, failed }) => requests + failed > 0);
          return (
            <Table
              caption="What the account used"
              columns={columns}
              rows={by === 'month' ? shown.toReversed() : shown}
              rowKey={(row) => NAME[by](row)}
              empty={<Empty title="No call in these days" text="Figures appear a few seconds after a call." />}
            />
          );
        }}
      </QueryView>
    </Card>
  );
}

const STATES = [
  { value: '', text: 'All' },
  { value: 'held', text: 'Running' },
  { value: 'settled', text: 'Settled' },
  { value: 'failed', text: 'Failed' },
] as const;
type State = (typeof STATES)[number]['value'];

function Calls({ id, pageOf }: { readonly id: string; readonly pageOf: (call: string) => string }): ReactNode {
  const [state, setState] = useState<State>('');
  const [service, setService] = useState('');
  const [, navigate] = useLocation();
  const ofState = state === '' ? {} : state === 'failed' ? { failed: true } : { state, failed: false };
  const filters = { ...ofState, ...(service === '' ? {} : { service }) };
  const calls = useInfiniteQuery({
    queryKey: [...ACCOUNTS, 'calls', id, filters],
    queryFn: ({ pageParam }) =>
      call(
        api.GET('/admin/v1/accounts/{id}/calls', {
          params: { path: { id }, query: { limit: 25, ...filters, ...pageParam } },
        }),
      ),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: ({ next_cursor }) => (next_cursor === null ? null : { cursor: next_cursor }),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  return (
    <Card title="Calls" flush action={<Choice label="State" options={STATES} chosen={state} onChoose={setState} />}>
      <div className="flex flex-wrap gap-3 border-b border-line px-4 py-3 sm:px-5">
        <SearchField
          label="Calls of one service"
          name="Service"
          placeholder="Only this service, then Enter"
          onFind={setService}
        />
        <SearchField
          label="Find a call"
          name="Id of a call or a request"
          placeholder="Id of a call or a request, then Enter"
          onFind={(call) => call !== '' && navigate(pageOf(call))}
        />
      </div>
      <QueryView query={calls}>
        {({ pages }) => (
          <CallsTable
            calls={pages.flatMap((page) => page.data) as readonly CallRow[]}
            pageOf={pageOf}
            empty={<Empty title="No call" text="Nothing among the calls that were looked at so far." />}
          />
        )}
      </QueryView>
      {calls.hasNextPage && (
        <div className="flex justify-center border-t border-line py-3">
          <Button busy={calls.isFetchingNextPage} onClick={() => void calls.fetchNextPage()}>
            Older calls
          </Button>
        </div>
      )}
    </Card>
  );
}

function SearchField({
  label,
  name,
  placeholder,
  onFind,
}: {
  readonly label: string;
  readonly name: string;
  readonly placeholder: string;
  readonly onFind: (text: string) => void;
}): ReactNode {
  return (
    <form
      role="search"
      aria-label={label}
      className="min-w-0 flex-1 basis-64"
      onSubmit={(event) => {
        event.preventDefault();
        onFind(String(new FormData(event.currentTarget).get('text')).trim());
      }}
    >
      <Field label={name} labelHidden name="text" placeholder={placeholder} />
    </form>
  );
}

const FIRST_PAGE: { readonly cursor?: string } = {};
