import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { AccountName } from '../../account/account-name.tsx';
import { CsvButton } from '../../ui/csv-button.tsx';
import { type AnswerOf, api, call } from '../../api/client.ts';
import { utcDay } from '../../api/own.ts';
import { useSearchState } from '../../app/search.ts';
import { Card } from '../../ui/card.tsx';
import { Chart } from '../../ui/chart.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Select } from '../../ui/field.tsx';
import { KIND_NAMES } from '../../ui/kinds.ts';
import { Money } from '../../ui/money.tsx';
import { monthName, months } from '../../ui/months.ts';
import { formatNumber, formatShort } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { formatMicroUsd } from '../../ui/usd.ts';
import { ACCOUNTS } from './account.ts';
import { accountPage } from './paths.ts';

type Figures = AnswerOf<'usageOfAllAccounts'>;
/** Sums of calls. Members that the question does not group by are missing. */
type Row = Figures['data'][number];

const ACCOUNT = { value: 'account', text: 'Account' } as const;
const GROUPS = [
  { value: 'day', text: 'Day' },
  { value: 'month', text: 'Month' },
  { value: 'model', text: 'Service' },
  { value: 'key', text: 'Key' },
  { value: 'provider', text: 'Provider' },
  { value: 'primitive', text: 'Kind' },
] as const;
const TAG = { value: 'tag', text: 'Tag' } as const;
type Group = (typeof GROUPS | readonly [typeof ACCOUNT, typeof TAG])[number]['value'];

const NAME: Readonly<Record<Group, (row: Row) => string>> = {
  account: ({ account }) => account ?? '–',
  day: ({ date }) => date ?? '–',
  month: ({ month }) => month ?? '–',
  model: ({ model }) => model ?? '–',
  key: ({ key, key_label }) => key_label ?? (key == null ? 'Without a key' : `${key.slice(0, 8)}…`),
  provider: ({ provider_name, provider }) => provider_name ?? provider ?? 'Nobody served',
  primitive: ({ primitive }) => (primitive === undefined ? '–' : KIND_NAMES[primitive].many),
  tag: ({ tag }) => tag ?? 'Without the tag',
};

const START = { by: '', tag: '', time: '' };
const YEAR = 'year';

/** The days of a chosen time: a month, twelve months, or the last 30 days. */
function daysOf(time: string): { readonly start_date: string; readonly end_date?: string } {
  if (time === YEAR) return { start_date: `${months().at(-1)!}-01` };
  if (!/^\d{4}-\d\d$/.test(time)) return { start_date: utcDay(29) };
  const [year, month] = time.split('-').map(Number) as [number, number];
  const last = new Date(Date.UTC(year, month, 0)).toISOString().slice(0, 10);
  return { start_date: `${time}-01`, end_date: last < utcDay(0) ? last : utcDay(0) };
}

/** Sums of all accounts cost the database much more than those of one. */
const [AGAIN_MS, ALL_AGAIN_MS] = [15_000, 60_000];

/** Groups as the API names them. Keys of several accounts may have one name, so each comes with its account. */
function groupOf(by: Group, tag: string, account: string | null): string {
  if (by === 'tag') return `tag:${tag}`;
  return by === 'key' && account === null ? 'account,key' : by;
}

const readFigures = (account: string | null, query: Readonly<Record<string, string>>): Promise<Figures> =>
  account === null
    ? call(api.GET('/admin/v1/usage', { params: { query } }))
    : call(api.GET('/admin/v1/accounts/{id}/usage', { params: { path: { id: account }, query } }));

/** The spending of all accounts in a chosen time. */
export default function AllUsage(): ReactNode {
  return <Usage account={null} />;
}

/**
 * Spending in a chosen time, by day, month, service, key, provider, kind or tag, and that of all accounts by account
 * too. `account`: null for that of all.
 */
export function Usage({ account }: { readonly account: string | null }): ReactNode {
  const [search, set] = useSearchState(START);
  const groups = account === null ? [ACCOUNT, ...GROUPS] : GROUPS;
  const known = search.tag === '' ? groups : [...groups, TAG];
  const by: Group = known.find(({ value }) => value === search.by)?.value ?? groups[0].value;
  const query = { group_by: groupOf(by, search.tag, account), ...daysOf(search.time) };
  const usage = useQuery({
    queryKey: [...ACCOUNTS, 'usage', account, query],
    queryFn: () => readFigures(account, query),
    placeholderData: keepPreviousData,
    refetchInterval: account === null ? ALL_AGAIN_MS : AGAIN_MS,
  });
  const tags = usage.data?.tags ?? [];
  return (
    <Card
      title={account === null ? 'Usage of all accounts' : 'Spending'}
      flush
      action={
        <span className="flex flex-wrap items-end gap-2">
          <Select
            label="Time"
            labelHidden
            compact
            options={[
              { value: '', text: 'Last 30 days' },
              { value: YEAR, text: 'Last 12 months' },
              ...months().map((month) => ({ value: month, text: monthName(month) })),
            ]}
            value={search.time}
            onChange={({ target }) => set({ time: target.value })}
          />
          {by === 'tag' && tags.length > 1 && (
            <Select
              label="Tag"
              labelHidden
              compact
              options={tags.map((tag) => ({ value: tag, text: tag }))}
              value={search.tag}
              onChange={({ target }) => set({ tag: target.value })}
            />
          )}
          <Choice
            label="Spending by"
            options={tags.length > 0 || by === 'tag' ? [...groups, TAG] : groups}
            chosen={by}
            onChoose={(chosen) => set(chosen === 'tag' ? { by: chosen, tag: search.tag || tags[0]! } : { by: chosen })}
          />
          <CsvButton
            path={`/admin/v1/${account === null ? '' : `accounts/${encodeURIComponent(account)}/`}usage?${new URLSearchParams({ ...query, format: 'csv' })}`}
            compact
            name={`usage-${account?.split(':').at(-1) ?? 'all'}-by-${by}.csv`}
          />
        </span>
      }
    >
      <QueryView query={usage}>{(found) => <FiguresView of={found} tag={search.tag} />}</QueryView>
    </Card>
  );
}

/** `tag`: the name of the tag that rows of a tag have. */
function FiguresView({
  of: { data: rows, totals, group_by: groups },
  tag,
}: {
  readonly of: Figures;
  readonly tag: string;
}): ReactNode {
  // The answer may still be that of the choice before.
  const group = groups.at(-1) ?? 'day';
  const by = (group.startsWith('tag:') ? 'tag' : group) as Group;
  const name = by === 'tag' ? tag : [ACCOUNT, ...GROUPS].find(({ value }) => value === by)!.text;
  const shown = rows.filter(({ requests, failed }) => requests + failed > 0);
  if (shown.length === 0)
    return <Empty title="No call in this time" text="Figures appear a few seconds after a call." />;
  return (
    <>
      <p className="border-b border-line px-4 py-3 text-soft sm:px-5">
        <span className="font-medium text-ink">
          <Money micro={totals.cost_micro_usdc} />
        </span>{' '}
        for {formatNumber(totals.requests)} {totals.requests === 1 ? 'call' : 'calls'}
        {totals.failed > 0 && `, ${formatNumber(totals.failed)} more failed`}
      </p>
      {by === 'day' ? (
        <div className="px-4 py-4 sm:px-5">
          <Chart
            title="Spending by day"
            days={rows.map(({ date }) => date!)}
            series={[{ name: 'Spent', values: rows.map(({ cost_micro_usdc: micro }) => micro), color: '--accent' }]}
            format={formatMicroUsd}
            stacked
            height={180}
          />
        </div>
      ) : (
        <Table
          caption="Usage"
          columns={columnsOf(name, by)}
          rows={by === 'month' ? shown.toReversed() : shown}
          rowKey={(row) => [row.account, row.key, row.provider, NAME[by](row)].join(' ')}
        />
      )}
    </>
  );
}

/** The name of a row. An account has its id below, a key of one of several accounts has its account. */
function Name({ of: row, by }: { readonly of: Row; readonly by: Group }): ReactNode {
  const { account, account_label: label } = row;
  if (account === undefined) return <span className="font-medium">{NAME[by](row)}</span>;
  const name = label == null || label === '' ? <AccountName account={account} /> : label;
  return (
    <>
      {by === 'key' && <span className="block font-medium">{NAME.key(row)}</span>}
      <Link
        href={accountPage(account)}
        className={`block ${by === 'key' ? 'text-sm link' : 'font-medium hover:underline'}`}
      >
        {name}
      </Link>
      {by === 'account' && <span className="font-mono text-xs break-all text-soft">{account}</span>}
    </>
  );
}

const columnsOf = (head: string, by: Group): readonly Column<Row>[] => [
  { id: 'name', head, cell: (row) => <Name of={row} by={by} /> },
  { id: 'requests', head: 'Served', align: 'right', cell: ({ requests }) => formatNumber(requests) },
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
  { id: 'spent', head: 'Spent', align: 'right', cell: (row) => <Money micro={row.cost_micro_usdc} /> },
];
