import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo, type ReactNode } from 'react';
import { api, data } from '../../api/client.ts';
import { useSearchState } from '../../app/search.ts';
import { Card } from '../../ui/card.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Field } from '../../ui/field.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Table } from '../../ui/table.tsx';
import { OFFER_COLUMNS, type Offer, offerKey } from './offers.tsx';
import { RangeChoice, rangeOf } from './sums.tsx';

const START = { range: '24h', q: '', only: '', sort: 'charged', down: '1' };

const FILTERS = [
  { value: '', text: 'All' },
  { value: 'losing', text: 'Lose money' },
  { value: 'broken', text: 'Broken' },
  { value: 'uncosted', text: 'Without a cost' },
] as const;
type Filter = (typeof FILTERS)[number]['value'];

const BROKEN: ReadonlySet<string> = new Set(['degraded', 'failing', 'cooling_down', 'away']);

const PASSES: Readonly<Record<Filter, (offer: Offer) => boolean>> = {
  '': () => true,
  losing: ({ sums }) => sums.margin_micro_usd < 0,
  broken: ({ status }) => status !== null && BROKEN.has(status),
  uncosted: ({ own, cost }) => own && cost === null,
};

/** The offers of all services: health, price, cost and margin. */
export default function Services(): ReactNode {
  const [search, set] = useSearchState(START);
  const range = rangeOf(search.range);
  const only = FILTERS.find(({ value }) => value === search.only)?.value ?? '';
  const services = useQuery({
    queryKey: ['admin', 'services', range],
    queryFn: () => data(api.GET('/admin/v1/services', { params: { query: { range } } })),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  const words = search.q.trim().toLowerCase();
  const shown = useMemo(
    () =>
      (services.data ?? []).filter(
        (offer) =>
          PASSES[only](offer) &&
          `${offer.service} ${offer.provider_name ?? ''} ${offer.upstream_model ?? ''}`.toLowerCase().includes(words),
      ),
    [services.data, only, words],
  );
  return (
    <div className="grid gap-5">
      <div className="flex min-w-0 flex-wrap items-center justify-between gap-3">
        <RangeChoice chosen={range} onChoose={(chosen) => set({ range: chosen })} />
        <Choice label="Only" options={FILTERS} chosen={only} onChoose={(chosen) => set({ only: chosen })} />
      </div>
      <Card title="Services" flush>
        <div className="border-b border-line px-4 py-3 sm:px-5">
          <Field
            label="Find a service"
            labelHidden
            type="search"
            placeholder="Name, provider or model of the vendor"
            className="max-w-sm"
            value={search.q}
            onChange={({ target }) => set({ q: target.value })}
          />
        </div>
        <QueryView query={services}>
          {() => (
            <Table
              caption="Services"
              columns={OFFER_COLUMNS}
              rows={shown}
              rowKey={offerKey}
              sorting={{ column: search.sort, down: search.down !== '' }}
              onSort={({ column, down }) => set({ sort: column, down: down ? '1' : '' })}
              rowHeight={84}
              empty={
                <Empty
                  title="No service"
                  text={
                    only === '' && words === ''
                      ? 'Add services to the configuration file, or let a provider dial in.'
                      : 'No service passes these filters.'
                  }
                />
              }
            />
          )}
        </QueryView>
      </Card>
    </div>
  );
}
