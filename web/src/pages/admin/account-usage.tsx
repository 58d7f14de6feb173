import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { type AnswerOf, api, call } from '../../api/client.ts';
import { type OwnFigures, utcDay } from '../../api/own.ts';
import { useSearchState } from '../../app/search.ts';
import { Card } from '../../ui/card.tsx';
import { Chart } from '../../ui/chart.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Select } from '../../ui/field.tsx';
import { KIND_NAMES } from '../../ui/kinds.ts';
import { Money } from '../../ui/money.tsx';
import { formatNumber, formatShort } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { formatMicroUsd } from '../../ui/usd.ts';
import { ACCOUNTS } from './account.ts';

type Usage = AnswerOf<'usageOfAnAccount'>;

const GROUPS = [
  { value: 'day', text: 'Day' },
  { value: 'month', text: 'Month' },
  { value: 'model', text: 'Service' },
  { value: 'key', text: 'Key' },
  { value: 'provider', text: 'Provider' },
  { value: 'primitive', text: 'Kind' },
] as const;
const TAG = { value: 'tag', text: 'Tag' } as const;
type Group = (typeof GROUPS)[number]['value'] | 'tag';

const NAME: Readonly<Record<Group, (row: OwnFigures) => string>> = {
  day: ({ date }) => date ?? '–',
  month: ({ month }) => month ?? '–',
  model: ({ model }) => model ?? '–',
  key: ({ key, key_label }) => key_label ?? (key == null ? 'Without a key' : `${key.slice(0, 8)}…`),
  provider: ({ provider_name, provider }) => provider_name ?? provider ?? 'Nobody served',
  primitive: ({ primitive }) => (primitive === undefined ? '–' : KIND_NAMES[primitive].many),
  tag: ({ tag }) => tag ?? 'Without the tag',
};

const START = { by: 'day', tag: '', time: '' };
const MONTHS = 12;
const YEAR = 'year';

/** The months that can be chosen, the newest first, such as `2026-10`. */
function monthsUntil(now: Date): readonly string[] {
  return Array.from({ length: MONTHS }, (_, back) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)).toISOString().slice(0, 7),
  );
}

const monthName = (month: string): string =>
  new Date(`${month}-01T00:00:00Z`).toLocaleDateString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });

/** The days of a chosen time: a month, twelve months, or the last 30 days. */
function daysOf(time: string): { readonly start_date: string; readonly end_date?: string } {
  if (time === YEAR) return { start_date: `${monthsUntil(new Date()).at(-1)!}-01` };
  if (!/^\d{4}-\d\d$/.test(time)) return { start_date: utcDay(29) };
  const [year, month] = time.split('-').map(Number) as [number, number];
  const last = new Date(Date.UTC(year, month, 0)).toISOString().slice(0, 10);
  return { start_date: `${time}-01`, end_date: last < utcDay(0) ? last : utcDay(0) };
}

/** The spending of an account in a chosen time, by day, month, service, key, provider, kind or tag. */
export function AccountUsage({ id }: { readonly id: string }): ReactNode {
  const [search, set] = useSearchState(START);
  const by: Group =
    search.by === TAG.value ? TAG.value : (GROUPS.find(({ value }) => value === search.by)?.value ?? 'day');
  const days = daysOf(search.time);
  const group = by === 'tag' ? `tag:${search.tag}` : by;
  const usage = useQuery({
    queryKey: [...ACCOUNTS, 'usage', id, group, days],
    queryFn: () =>
      call(api.GET('/admin/v1/accounts/{id}/usage', { params: { path: { id }, query: { group_by: group, ...days } } })),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  const tags = usage.data?.tags ?? [];
  const [months] = useState(() => monthsUntil(new Date()));
  return (
    <Card
      title="Spending"
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
              ...months.map((month) => ({ value: month, text: monthName(month) })),
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
            options={tags.length > 0 || by === 'tag' ? [...GROUPS, TAG] : GROUPS}
            chosen={by}
            onChoose={(chosen) => set(chosen === 'tag' ? { by: chosen, tag: search.tag || tags[0]! } : { by: chosen })}
          />
        </span>
      }
    >
      <QueryView query={usage}>{(found) => <Figures of={found} tag={search.tag} />}</QueryView>
    </Card>
  );
}

/** `tag`: the name of the tag that rows of a tag have. */
function Figures({
  of: { data: rows, totals, group_by: groups },
  tag,
}: {
  readonly of: Usage;
  readonly tag: string;
}): ReactNode {
  // The answer may still be that of the choice before.
  const by = (groups[0]?.startsWith('tag:') === true ? 'tag' : (groups[0] ?? 'day')) as Group;
  const name = by === 'tag' ? tag : [...GROUPS].find(({ value }) => value === by)!.text;
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
          caption="What the account used"
          columns={columnsOf(name, NAME[by])}
          rows={by === 'month' ? shown.toReversed() : shown}
          rowKey={NAME[by]}
        />
      )}
    </>
  );
}

const columnsOf = (head: string, nameOf: (row: OwnFigures) => string): readonly Column<OwnFigures>[] => [
  { id: 'name', head, cell: (row) => <span className="font-medium break-words">{nameOf(row)}</span> },
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
