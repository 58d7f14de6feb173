import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { api, call, data } from '../../api/client.ts';
import type { CallRow } from '../../api/own.ts';
import { useSearchState } from '../../app/search.ts';
import { CallsTable } from '../../calls/calls-table.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Field, Select } from '../../ui/field.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { ACCOUNTS } from './account.ts';
import { SearchField } from '../../ui/search-field.tsx';

const STATES = [
  { value: '', text: 'All' },
  { value: 'held', text: 'Running' },
  { value: 'settled', text: 'Settled' },
  { value: 'failed', text: 'Failed' },
] as const;
type State = (typeof STATES)[number]['value'];

const OF_STATE: Readonly<Record<State, { readonly state?: 'held' | 'settled'; readonly failed?: boolean }>> = {
  '': {},
  held: { state: 'held' },
  settled: { state: 'settled', failed: false },
  failed: { failed: true },
};

const NO_FILTERS = { state: '', service: '', key: '', from: '', to: '' };
const FIRST_PAGE: { readonly cursor?: string } = {};
const PAGE = 15;
const KEYS = 100;

/** The calls of an account, with filters, and the search for one by its id. */
export function AccountCalls({
  id,
  pageOf,
}: {
  readonly id: string;
  readonly pageOf: (call: string) => string;
}): ReactNode {
  const [search, set] = useSearchState(NO_FILTERS);
  const [, navigate] = useLocation();
  const state = STATES.find(({ value }) => value === search.state)?.value ?? '';
  const { service, key, from, to } = search;
  const filters = {
    ...OF_STATE[state],
    ...Object.fromEntries(Object.entries({ service, key, from, to }).filter(([, value]) => value !== '')),
  };
  const isFiltered = Object.keys(filters).length > 0;
  const calls = useInfiniteQuery({
    queryKey: [...ACCOUNTS, 'calls', id, filters],
    queryFn: ({ pageParam }) =>
      call(
        api.GET('/admin/v1/accounts/{id}/calls', {
          params: { path: { id }, query: { limit: PAGE, ...filters, ...pageParam } },
        }),
      ),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: ({ next_cursor }) => (next_cursor === null ? null : { cursor: next_cursor }),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  const keys = useQuery({
    queryKey: [...ACCOUNTS, 'keys', id, 'names'],
    queryFn: () => data(api.GET('/admin/v1/accounts/{id}/keys', { params: { path: { id }, query: { limit: KEYS } } })),
  });
  return (
    <Card
      title="Calls"
      flush
      action={<Choice label="State" options={STATES} chosen={state} onChoose={(chosen) => set({ state: chosen })} />}
    >
      <div className="grid grid-cols-2 items-end gap-3 border-b border-line px-4 py-3 sm:px-5 lg:grid-cols-[2fr_1.5fr_1fr_1fr_2fr]">
        <SearchField
          label="Calls of one service"
          name="Service"
          value={service}
          onFind={(text) => set({ service: text })}
        />
        <Select
          label="Key"
          options={[
            { value: '', text: 'All' },
            ...(keys.data ?? []).map(({ hash, name }) => ({ value: hash, text: name })),
          ]}
          value={key}
          onChange={({ target }) => set({ key: target.value })}
        />
        <Field label="From (UTC)" type="date" value={from} onChange={({ target }) => set({ from: target.value })} />
        <Field label="To (UTC)" type="date" value={to} onChange={({ target }) => set({ to: target.value })} />
        <SearchField
          label="Find a call"
          name="Id of a call or a request"
          className="max-lg:col-span-2"
          onFind={(text) => text !== '' && navigate(pageOf(text))}
        />
      </div>
      <QueryView query={calls}>
        {({ pages }) => (
          <CallsTable
            calls={pages.flatMap((page) => page.data) as readonly CallRow[]}
            pageOf={pageOf}
            empty={
              isFiltered ? (
                <Empty
                  title="No call passes these filters"
                  text={calls.hasNextPage ? 'Of those that were looked at so far.' : undefined}
                  action={<Button onClick={() => set(NO_FILTERS)}>Clear the filters</Button>}
                />
              ) : (
                <Empty title="No call yet" text="Calls appear here as soon as they begin." />
              )
            }
          />
        )}
      </QueryView>
      {calls.hasNextPage && (
        <div className="flex justify-center border-t border-line py-3">
          <Button busy={calls.isFetchingNextPage} onClick={() => void calls.fetchNextPage()}>
            {isFiltered ? 'Look further back' : 'Older calls'}
          </Button>
        </div>
      )}
    </Card>
  );
}
