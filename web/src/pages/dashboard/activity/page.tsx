import { useMemo, type ReactNode } from 'react';
import { Link } from 'wouter';
import { useMembers } from '../../../api/organisation.ts';
import { type OwnFigures, useOwnAnalytics } from '../../../api/own.ts';
import { useSearchState } from '../../../app/search.ts';
import { Card, Figure } from '../../../ui/card.tsx';
import { Chart, type Series } from '../../../ui/chart.tsx';
import { Choice } from '../../../ui/choice.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { Select } from '../../../ui/field.tsx';
import { KIND_NAMES } from '../../../ui/kinds.ts';
import { Money } from '../../../ui/money.tsx';
import { formatMicroUsd } from '../../../ui/usd.ts';
import { formatNumber, formatShort } from '../../../ui/number.ts';
import { QueryView } from '../../../ui/query-view.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { CsvButton } from '../../../ui/csv-button.tsx';
import { Frame } from '../frame.tsx';
import { isMonth, lastDays, monthOptions, monthPeriod, type Period, yesterday } from './period.ts';

const METRICS = [
  { value: 'spend', text: 'Spend' },
  { value: 'tokens', text: 'Tokens' },
  { value: 'requests', text: 'Requests' },
] as const;
const GROUPS = [
  { value: 'model', text: 'Service' },
  { value: 'key', text: 'Key' },
  { value: 'member', text: 'Member' },
  { value: 'provider', text: 'Provider' },
  { value: 'primitive', text: 'Kind' },
  { value: 'tag', text: 'Tag' },
] as const;
const SPANS = [
  { value: '1', text: 'Today' },
  { value: 'yesterday', text: 'Yesterday' },
  { value: '7', text: '7 days' },
  { value: '30', text: '30 days' },
  { value: '90', text: '90 days' },
] as const;

type Metric = (typeof METRICS)[number]['value'];
type Group = (typeof GROUPS)[number]['value'];

const START = { metric: 'spend', by: 'model', days: '30', month: '', tag: '' };

const VALUE: Readonly<Record<Metric, (row: OwnFigures) => number>> = {
  spend: ({ cost_micro_usdc }) => cost_micro_usdc,
  tokens: ({ total_tokens }) => total_tokens,
  requests: ({ requests }) => requests,
};
const FORMAT: Readonly<Record<Metric, (value: number) => string>> = {
  spend: formatMicroUsd,
  tokens: formatShort,
  requests: formatNumber,
};
/** The names of groups. `members`: those of members by their accounts. */
type Members = ReadonlyMap<string, string>;
const NAME: Readonly<Record<Group, (row: OwnFigures, members: Members) => string>> = {
  model: ({ model }) => model ?? '–',
  key: ({ key, key_label }) => key_label ?? (key == null ? 'Without a key' : `${key.slice(0, 8)}…`),
  member: ({ member }, members) => (member == null ? 'The account itself' : members.get(member) || member),
  provider: ({ provider_name }) => provider_name ?? 'Nobody served',
  primitive: ({ primitive }) => (primitive === undefined ? '–' : KIND_NAMES[primitive].many),
  tag: ({ tag }) => tag ?? 'Without this tag',
};
const ID: Readonly<Record<Group, (row: OwnFigures) => string>> = {
  model: ({ model }) => model ?? '',
  key: ({ key }) => key ?? '',
  member: ({ member }) => member ?? '',
  provider: ({ provider }) => provider ?? '',
  primitive: ({ primitive }) => primitive ?? '',
  tag: ({ tag }) => tag ?? '',
};

/** The filters of the list of calls that keep those of a group; null for groups that it cannot filter by. */
const FILTER: Readonly<Record<Group, string | null>> = {
  model: 'service',
  key: 'key',
  primitive: 'primitive',
  member: null,
  provider: null,
  tag: null,
};

/** If the value in the address is unknown, `first` is used. */
const known = <T extends string>(
  options: readonly { readonly value: T }[],
  value: string,
  first = options[0]!.value,
): T => options.find((option) => option.value === value)?.value ?? first;

const daysOf = (span: (typeof SPANS)[number]['value']): Period =>
  span === 'yesterday' ? yesterday() : lastDays(Number(span));

export default function ActivityPage(): ReactNode {
  const [state, set] = useSearchState(START);
  const metric = known(METRICS, state.metric);
  const by = known(GROUPS, state.by);
  const month = isMonth(state.month) ? state.month : '';
  const span = known(SPANS, state.days, '30');
  const period = useMemo(() => (month === '' ? daysOf(span) : monthPeriod(month)), [month, span]);
  const { first, last } = period;
  const groups = by !== 'tag' ? `day,${by}` : state.tag === '' ? 'day' : `day,tag:${state.tag}`;
  const query = new URLSearchParams({ group_by: groups, start_date: first, end_date: last, format: 'csv' });
  return (
    <Frame
      title="Activity"
      lead="What you use, by day. Days are UTC days."
      action={() => <CsvButton path={`/api/v1/analytics/own?${query}`} name={`activity-${first}-${last}.csv`} />}
    >
      {() => (
        <Figures
          metric={metric}
          by={by}
          groups={groups}
          period={period}
          controls={(tags) => (
            <div className="flex flex-wrap gap-3">
              <Choice label="Figure" options={METRICS} chosen={metric} onChoose={(value) => set({ metric: value })} />
              <Choice
                label="Grouped by"
                options={GROUPS}
                chosen={by}
                onChoose={(value) => set({ by: value, tag: state.tag === '' ? (tags[0] ?? '') : state.tag })}
              />
              {by === 'tag' && (
                <Select
                  label="Tag"
                  labelHidden
                  compact
                  options={tagOptions(tags, state.tag)}
                  value={state.tag}
                  onChange={({ target }) => set({ tag: target.value })}
                />
              )}
              <Choice
                label="Days"
                options={SPANS}
                chosen={month === '' ? span : null}
                onChoose={(value) => set({ days: value, month: '' })}
              />
              <Select
                label="Month"
                labelHidden
                compact
                options={monthOptions()}
                value={month}
                onChange={({ target }) => set({ month: target.value })}
              />
            </div>
          )}
        />
      )}
    </Frame>
  );
}

/** The tags of these days, and the one of the address. */
function tagOptions(tags: readonly string[], chosen: string) {
  const names = [...new Set([...tags, ...(chosen === '' ? [] : [chosen])])].map((name) => ({
    value: name,
    text: name,
  }));
  return chosen === '' ? [{ value: '', text: tags.length === 0 ? 'No tags' : 'Which tag' }, ...names] : names;
}

function Figures({
  metric,
  by,
  groups,
  period,
  controls,
}: {
  readonly metric: Metric;
  readonly by: Group;
  readonly groups: string;
  readonly period: Period;
  /** The controls above them, by the names of the tags in these days. */
  readonly controls: (tags: readonly string[]) => ReactNode;
}): ReactNode {
  const figures = useOwnAnalytics(groups, period.first, period.last);
  const list = useMembers(by === 'member').data;
  const members: Members = useMemo(() => new Map(list?.map(({ account, name }) => [account, name])), [list]);
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-5">
      {controls(figures.data?.tags ?? [])}
      <QueryView query={figures} loading={<Skeleton className="h-96 w-full rounded-xl" />}>
        {({ data, totals }) =>
          data.every(({ requests, failed }) => requests + failed === 0) ? (
            <Card>
              <Empty heading="h2" title="No call in these days" text="Figures appear a few seconds after a call." />
            </Card>
          ) : (
            <>
              <Totals totals={totals} />
              {period.days.length > 1 && (
                <ByDay rows={data} metric={metric} by={by} days={period.days} members={members} />
              )}
              <Groups rows={data} by={by} period={period} members={members} />
            </>
          )
        }
      </QueryView>
    </div>
  );
}

function Totals({ totals }: { readonly totals: OwnFigures }): ReactNode {
  return (
    <Card>
      <dl className="grid grid-cols-2 gap-6 md:grid-cols-4">
        <Figure name="Spend" value={<Money micro={totals.cost_micro_usdc} />} />
        <Figure
          name="Requests"
          value={formatShort(totals.requests)}
          note={totals.failed > 0 ? `${formatNumber(totals.failed)} more failed, free of charge` : undefined}
        />
        <Figure name="Tokens in" value={formatShort(totals.prompt_tokens)} />
        <Figure name="Tokens out" value={formatShort(totals.completion_tokens)} />
      </dl>
    </Card>
  );
}

const SHOWN = 6;

function ByDay({
  rows,
  metric,
  by,
  days,
  members,
}: {
  readonly rows: readonly OwnFigures[];
  readonly metric: Metric;
  readonly by: Group;
  readonly days: readonly string[];
  readonly members: Members;
}): ReactNode {
  const series = useMemo(() => seriesOf(rows, days, VALUE[metric], by, members), [rows, metric, by, days, members]);
  const title = `${METRICS.find(({ value }) => value === metric)!.text} by day and ${GROUPS.find(({ value }) => value === by)!.text.toLowerCase()}`;
  return (
    <Card title={title}>
      <Chart title={title} days={days} series={series} format={FORMAT[metric]} stacked />
    </Card>
  );
}

/** One series for each of the largest groups, and one for all others. A single other group keeps its name. */
function seriesOf(
  rows: readonly OwnFigures[],
  days: readonly string[],
  value: (row: OwnFigures) => number,
  by: Group,
  members: Members,
): readonly Series[] {
  const sums = new Map<string, { name: string; sum: number; days: Map<string, number> }>();
  for (const row of rows) {
    const id = ID[by](row);
    const group = sums.get(id) ?? { name: NAME[by](row, members), sum: 0, days: new Map<string, number>() };
    group.sum += value(row);
    group.days.set(row.date ?? '', (group.days.get(row.date ?? '') ?? 0) + value(row));
    sums.set(id, group);
  }
  const groups = [...sums.values()].sort((one, other) => other.sum - one.sum);
  const values = (of: readonly { days: Map<string, number> }[]) =>
    days.map((day) => of.reduce((sum, group) => sum + (group.days.get(day) ?? 0), 0));
  const shown = groups.slice(0, SHOWN).map((group) => ({ name: group.name, values: values([group]) }));
  const others = groups.slice(SHOWN);
  const name = others.length === 1 ? others[0]!.name : `${others.length} others`;
  return others.length === 0 ? shown : [...shown, { name, values: values(others), color: '--edge' }];
}

/** The list of the calls of a group in these days. */
const callsOf = (filter: string, id: string, { first, last }: Period): string =>
  `/dashboard/calls?${new URLSearchParams({ [filter]: id, from: first, to: last })}`;

/** The figures of each group over all days. */
function Groups({
  rows,
  by,
  period,
  members,
}: {
  readonly rows: readonly OwnFigures[];
  readonly by: Group;
  readonly period: Period;
  readonly members: Members;
}): ReactNode {
  const groups = useMemo(() => {
    const sums = new Map<
      string,
      { id: string; name: string; requests: number; failed: number; tokens: number; cost: number }
    >();
    for (const row of rows) {
      const id = ID[by](row);
      const sum = sums.get(id) ?? { id, name: NAME[by](row, members), requests: 0, failed: 0, tokens: 0, cost: 0 };
      sum.requests += row.requests;
      sum.failed += row.failed;
      sum.tokens += row.total_tokens;
      sum.cost += row.cost_micro_usdc;
      sums.set(id, sum);
    }
    return [...sums.values()].sort((one, other) => other.cost - one.cost);
  }, [rows, by, members]);
  type Sum = (typeof groups)[number];
  const columns: readonly Column<Sum>[] = [
    {
      id: 'name',
      head: GROUPS.find(({ value }) => value === by)!.text,
      cell: ({ id, name }) =>
        FILTER[by] === null || id === '' ? (
          <span className="font-medium">{name}</span>
        ) : (
          <Link href={callsOf(FILTER[by], id, period)} title="Its calls" className="font-medium hover:underline">
            {name}
          </Link>
        ),
    },
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
      cell: ({ tokens }) => (tokens === 0 ? '–' : formatShort(tokens)),
    },
    { id: 'cost', head: 'Spend', align: 'right', cell: ({ cost }) => <Money micro={cost} /> },
  ];
  return (
    <Card title="In all" flush>
      <Table caption="Figures of each group" columns={columns} rows={groups} rowKey={({ id }) => id} />
    </Card>
  );
}
