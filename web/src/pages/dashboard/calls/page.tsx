import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { api, call, queryOf } from '../../../api/client.ts';
import { useCalls, useKeys } from '../../../api/own.ts';
import { useSearchState } from '../../../app/search.ts';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { Field, Select } from '../../../ui/field.tsx';
import { KIND_NAMES, KINDS } from '../../../ui/kinds.ts';
import { QueryView } from '../../../ui/query-view.tsx';
import { SearchField } from '../../../ui/search-field.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { CsvButton } from '../../../ui/csv-button.tsx';
import { Frame } from '../frame.tsx';
import { CallsTable } from '../../../calls/calls-table.tsx';
import { Refusals } from '../../../calls/refusals.tsx';

const NO_FILTERS = { primitive: '', service: '', outcome: '', state: '', failed: '', key: '', from: '', to: '' };

export default function CallsPage(): ReactNode {
  const [filters, setFilters] = useSearchState(NO_FILTERS);
  return (
    <Frame
      title="Calls"
      lead="Every call of your account, with what it cost and why."
      action={() => (
        <CsvButton path={`/api/v1/generations?${queryOf({ ...filters, format: 'csv' })}`} name="calls.csv" />
      )}
    >
      {() => (
        <>
          <FindCall />
          <Filters filters={filters} onChange={setFilters} />
          <List filters={filters} onClear={() => setFilters(NO_FILTERS)} />
          <div className="mt-5">
            <Refusals
              queryKey={['refusals']}
              read={() => call(api.GET('/api/v1/refusals'))}
              guide="/docs/guide/reference/errors"
            />
          </div>
        </>
      )}
    </Frame>
  );
}

/** Opens the page of a call by its id, such as that of an answer or of an error. */
function FindCall(): ReactNode {
  const [, navigate] = useLocation();
  return (
    <SearchField
      label="Find a call"
      name="Id of a call"
      placeholder="gen-…, then Enter"
      className="mb-3 max-w-md"
      onFind={(text) => text !== '' && navigate(`/dashboard/calls/${encodeURIComponent(text)}`)}
    />
  );
}

function List({ filters, onClear }: { readonly filters: typeof NO_FILTERS; readonly onClear: () => void }): ReactNode {
  const calls = useCalls(filters);
  const filtered = Object.values(filters).some((value) => value !== '');
  return (
    <>
      <Card flush>
        <QueryView
          query={calls}
          loading={
            <div className="p-5">
              <Skeleton className="h-96 w-full" />
            </div>
          }
        >
          {({ pages }) => (
            <CallsTable
              calls={pages.flatMap(({ data }) => data)}
              empty={
                filtered ? (
                  <Empty
                    heading="h2"
                    title="No call matches"
                    text="Nothing among the calls that were looked at so far."
                    action={<Button onClick={onClear}>Clear the filters</Button>}
                  />
                ) : (
                  <Empty heading="h2" title="No call yet" text="Calls appear here as soon as they begin." />
                )
              }
            />
          )}
        </QueryView>
      </Card>
      {calls.hasNextPage && (
        <div className="mt-4 flex justify-center">
          <Button busy={calls.isFetchingNextPage} onClick={() => void calls.fetchNextPage()}>
            {filtered ? 'Look further back' : 'Older calls'}
          </Button>
        </div>
      )}
    </>
  );
}

const KIND_OPTIONS = [
  { value: '', text: 'All' },
  ...KINDS.map((kind) => ({ value: kind, text: KIND_NAMES[kind].many })),
];
const OUTCOME_OPTIONS = [
  { value: '', text: 'All' },
  { value: 'state:held', text: 'Not over yet' },
  { value: 'complete', text: 'Complete' },
  { value: 'failed:true', text: 'Failed' },
  { value: 'cut', text: 'Cut' },
  { value: 'cancelled', text: 'Cancelled' },
  { value: 'stopped', text: 'Stopped' },
  { value: 'over_cap', text: 'Over its cap' },
  { value: 'continued', text: 'Continued' },
  { value: 'completed', text: 'Batch: completed' },
  { value: 'expired', text: 'Batch: expired' },
];

/** The filters of an outcome: a name and a value of its own, or an outcome of the API. */
function outcomeOf(option: string): Partial<typeof NO_FILTERS> {
  const [name = '', value] = option.split(':');
  return { state: '', failed: '', outcome: '', ...(value === undefined ? { outcome: name } : { [name]: value }) };
}

function Filters({
  filters,
  onChange,
}: {
  readonly filters: typeof NO_FILTERS;
  readonly onChange: (change: Partial<typeof NO_FILTERS>) => void;
}): ReactNode {
  const keys = useKeys().data ?? [];
  const outcome =
    filters.failed !== ''
      ? `failed:${filters.failed}`
      : filters.state === ''
        ? filters.outcome
        : `state:${filters.state}`;
  return (
    <form
      role="search"
      aria-label="Filters"
      onSubmit={(event) => event.preventDefault()}
      className="mb-5 grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-6"
    >
      <Select
        label="Kind"
        options={KIND_OPTIONS}
        value={filters.primitive}
        onChange={({ target }) => onChange({ primitive: target.value })}
      />
      <Field
        label="Service"
        placeholder="demo/chat"
        defaultValue={filters.service}
        key={`service ${filters.service}`}
        onBlur={({ target }) => onChange({ service: target.value.trim() })}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onChange({ service: event.currentTarget.value.trim() });
        }}
      />
      <Select
        label="Outcome"
        options={OUTCOME_OPTIONS}
        value={outcome}
        onChange={({ target }) => onChange(outcomeOf(target.value))}
      />
      <Select
        label="Key"
        options={[{ value: '', text: 'All' }, ...keys.map(({ hash, label }) => ({ value: hash, text: label }))]}
        value={filters.key}
        onChange={({ target }) => onChange({ key: target.value })}
      />
      <Field
        label="From (UTC)"
        type="date"
        value={filters.from}
        onChange={({ target }) => onChange({ from: target.value })}
      />
      <Field
        label="To (UTC)"
        type="date"
        value={filters.to}
        onChange={({ target }) => onChange({ to: target.value })}
      />
    </form>
  );
}
