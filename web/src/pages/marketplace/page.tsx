import { useQuery } from '@tanstack/react-query';
import { useCallback, useDeferredValue, useEffect, useMemo, useState, type ReactNode } from 'react';
import { useCallCounts } from '../../api/analytics.ts';
import { toolsQuery, toolTable, useServices, type Service } from '../../api/catalogue.ts';
import { useSearchState } from '../../app/search.ts';
import { createServiceSearch } from '../../search/services.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Heading } from '../../ui/heading.tsx';
import { formatNumber } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Table } from '../../ui/table.tsx';
import { COLUMNS } from './columns.tsx';
import { FilterBar } from './filter-bar.tsx';
import { DEFAULTS, filter, index, type Filters } from './filters.ts';
import { WeekFigures } from './week-figures.tsx';

export default function MarketplacePage(): ReactNode {
  const services = useServices();
  return (
    <>
      <Heading
        title="Marketplace"
        lead="Models, tools, agents, images and videos of many providers. One key calls them all, and each call shows its price before it runs."
      />
      <WeekFigures />
      <QueryView query={services} loading={<Loading />}>
        {(all) => <Market services={all} />}
      </QueryView>
    </>
  );
}

/** Typing changes the address only after this pause, because browsers limit the number of changes. */
const ADDRESS_MS = 300;

function Market({ services }: { readonly services: readonly Service[] }): ReactNode {
  const [{ q, ...others }, set] = useSearchState<Filters>(DEFAULTS);
  const [typed, setTyped] = useState(q);
  useEffect(() => {
    if (typed === q) return;
    const timer = setTimeout(() => set({ q: typed }), ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [typed, q, set]);
  const filters = { q: typed, ...others };
  const search = useDeferredValue(typed);

  const { data: calls } = useCallCounts();
  const indexed = useMemo(() => index(services, calls), [services, calls]);
  const { kind, provider, takes, gives, param, price, healthy, sort, down } = others;
  const { data: tools } = useQuery({ ...toolsQuery, enabled: search !== '' });
  const find = useMemo(() => createServiceSearch(indexed, toolTable(tools)), [indexed, tools]);
  const matches = useMemo(
    () =>
      filter(search.trim() === '' ? indexed : find(search), {
        kind,
        provider,
        takes,
        gives,
        param,
        price,
        healthy,
        sort,
        down,
      }),
    [indexed, find, search, kind, provider, takes, gives, param, price, healthy, sort, down],
  );
  const counts = useMemo(() => {
    const counted: Record<string, number> = { all: matches.length };
    for (const { primitive } of matches) counted[primitive] = (counted[primitive] ?? 0) + 1;
    return counted;
  }, [matches]);
  const shown = useMemo(
    () => (kind === 'all' ? matches : matches.filter(({ primitive }) => primitive === kind)),
    [matches, kind],
  );
  const change = useCallback(
    ({ q: text, ...changed }: Partial<Filters>) => {
      if (text !== undefined) setTyped(text);
      if (Object.keys(changed).length > 0) set(changed);
    },
    [set],
  );
  const reset = () => {
    setTyped('');
    set(DEFAULTS);
  };
  return (
    <Card flush>
      <FilterBar services={services} filters={filters} counts={counts} onChange={change} />
      <p role="status" className="sr-only">
        {formatNumber(shown.length)} services
      </p>
      <Table
        caption="Services with their prices"
        columns={COLUMNS}
        rows={shown}
        rowKey={({ primitive, name }) => `${primitive}/${name}`}
        sorting={{ column: sort, down: down !== '' }}
        onSort={(sorting) => set({ sort: sorting.column, down: sorting.down ? '1' : '' })}
        empty={
          services.length === 0 ? (
            <Empty
              title="Nothing is offered here yet."
              text="A provider lists a model, a tool or an agent with one command: tollgate provide."
            />
          ) : (
            <Empty
              title="No service matches."
              text="Search for another word, or take filters away."
              action={<Button onClick={reset}>Show all services</Button>}
            />
          )
        }
      />
    </Card>
  );
}

function Loading(): ReactNode {
  return (
    <Card flush>
      <div role="status" className="grid gap-3 border-b border-line p-4 sm:px-5">
        <span className="sr-only">Loading the services</span>
        <Skeleton className="h-10 w-full" />
        <Skeleton className="h-9 w-full max-w-xl" />
      </div>
      {Array.from({ length: 8 }, (_, row) => (
        <div key={row} className="flex h-16 items-center gap-3 border-t border-line px-4 sm:px-5">
          <Skeleton className="size-9 rounded-lg" />
          <Skeleton className="h-4 w-56 max-w-[50%]" />
          <Skeleton className="ml-auto h-4 w-24" />
        </div>
      ))}
    </Card>
  );
}
