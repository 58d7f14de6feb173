import { Search } from 'lucide-react';
import { memo, useMemo, type ReactNode } from 'react';
import type { Service } from '../../api/catalogue.ts';
import { Choice } from '../../ui/choice.tsx';
import { Checkbox, Select } from '../../ui/field.tsx';
import { KIND_NAMES, KINDS } from '../../ui/kind.tsx';
import { optionsOf, ORDERS, PRICES, type Filters } from './filters.ts';

interface Props {
  readonly services: readonly Service[];
  readonly filters: Filters;
  readonly onChange: (change: Partial<Filters>) => void;
  /** Number of matching services by kind, and for `all`. */
  readonly counts: Readonly<Record<string, number>>;
}

/** Search and filters of the marketplace. */
export function FilterBar({ services, filters, onChange, counts }: Props): ReactNode {
  const { price, provider, takes, gives, param, healthy, sort, down } = filters;
  const rest = useMemo(
    () => ({ price, provider, takes, gives, param, healthy, sort, down }),
    [price, provider, takes, gives, param, healthy, sort, down],
  );
  const kinds = [
    { value: 'all', name: 'All' },
    ...KINDS.map((kind) => ({ value: kind as string, name: KIND_NAMES[kind].many })),
  ].map(({ value, name }) => ({
    value,
    text: (
      <>
        {name} <span className="figures font-normal text-soft">{counts[value] ?? 0}</span>
      </>
    ),
  }));
  return (
    <search className="grid grid-cols-[minmax(0,1fr)] gap-3 border-b border-line p-4 sm:px-5">
      <div className="flex flex-wrap items-center gap-3">
        <div className="relative min-w-56 grow">
          <Search
            size={17}
            aria-hidden
            className="pointer-events-none absolute left-3 top-1/2 -translate-y-1/2 text-soft"
          />
          <input
            type="search"
            aria-label="Search by name, kind, ability, tool or provider"
            placeholder="Search: vision, text to speech, cheap, …"
            value={filters.q}
            onChange={(event) => onChange({ q: event.target.value })}
            className="h-10 w-full rounded-md border border-edge bg-card pl-10 pr-3 text-base placeholder:text-soft"
          />
        </div>
        <Choice label="Kind" options={kinds} chosen={filters.kind} onChoose={(kind) => onChange({ kind })} />
      </div>
      <Selects services={services} filters={rest} onChange={onChange} />
    </search>
  );
}

/** Memoised, so that typing in the search doesn't render it again. There may be a thousand providers. */
const Selects = memo(function Selects({
  services,
  filters,
  onChange,
}: Pick<Props, 'services' | 'onChange'> & {
  readonly filters: Pick<Filters, 'price' | 'provider' | 'takes' | 'gives' | 'param' | 'healthy' | 'sort' | 'down'>;
}): ReactNode {
  const options = useMemo(() => {
    const each = (values: (service: Service) => readonly (readonly [string, string])[]) => services.flatMap(values);
    return {
      provider: optionsOf(
        'Any provider',
        each(({ providers }) => providers.map(({ id, name }) => [id, name])),
      ),
      takes: optionsOf(
        'Takes anything',
        each(({ input_modalities }) => input_modalities.map((name) => [name, `Takes ${name}`])),
      ),
      gives: optionsOf(
        'Gives anything',
        each(({ output_modalities }) => output_modalities.map((name) => [name, `Gives ${name}`])),
      ),
      param: optionsOf(
        'Any parameters',
        each(({ supported_parameters }) => supported_parameters.map((name) => [name, name])),
      ),
    };
  }, [services]);
  const order = `${filters.down === '' ? '' : '-'}${filters.sort}`;
  return (
    <div className="grid grid-cols-2 items-center gap-x-3 gap-y-2 *:min-w-0 sm:flex sm:flex-wrap sm:*:max-w-56">
      <Select
        label="Price of a typical use"
        labelHidden
        compact
        options={PRICES}
        value={filters.price}
        onChange={(event) => onChange({ price: event.target.value })}
      />
      <Select
        label="Provider"
        labelHidden
        compact
        options={options.provider}
        value={filters.provider}
        onChange={(event) => onChange({ provider: event.target.value })}
      />
      <Select
        label="Input"
        labelHidden
        compact
        options={options.takes}
        value={filters.takes}
        onChange={(event) => onChange({ takes: event.target.value })}
      />
      <Select
        label="Output"
        labelHidden
        compact
        options={options.gives}
        value={filters.gives}
        onChange={(event) => onChange({ gives: event.target.value })}
      />
      {options.param.length > 1 && (
        <Select
          label="Parameter that it takes"
          labelHidden
          compact
          options={options.param}
          value={filters.param}
          onChange={(event) => onChange({ param: event.target.value })}
        />
      )}
      <div className="lg:hidden">
        <Select
          label="Order"
          labelHidden
          compact
          options={
            ORDERS.some(({ value }) => value === order) ? ORDERS : [{ value: order, text: 'Other order' }, ...ORDERS]
          }
          value={order}
          onChange={({ target: { value } }) =>
            onChange({ sort: value.replace('-', ''), down: value.startsWith('-') ? '1' : '' })
          }
        />
      </div>
      <Checkbox
        label="Can be called now"
        checked={filters.healthy !== ''}
        onChange={(event) => onChange({ healthy: event.target.checked ? '1' : '' })}
      />
    </div>
  );
});
