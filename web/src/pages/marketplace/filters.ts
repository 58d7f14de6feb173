import { isCallable, type Service } from '../../api/service.ts';

/** The filters in the address. These are the values if the address has no query. */
export const DEFAULTS = {
  q: '',
  kind: 'all',
  provider: '',
  takes: '',
  gives: '',
  param: '',
  price: '',
  healthy: '',
  sort: '',
  down: '',
};
export type Filters = typeof DEFAULTS;

/** Upper limits for the price of a typical use, in USD. */
export const PRICES = [
  { value: '', text: 'Any price' },
  { value: '0', text: 'Free' },
  { value: '0.001', text: 'Up to $0.001 a use' },
  { value: '0.01', text: 'Up to $0.01 a use' },
  { value: '0.1', text: 'Up to $0.10 a use' },
];

/**
 * Sort orders by column. `-` means descending. They are also a select, because a phone shows no column heads. The first
 * one is the order of `index`.
 */
export const ORDERS = [
  { value: '', text: 'Most used first' },
  { value: 'name', text: 'By name' },
  { value: 'price', text: 'Cheapest first' },
  { value: '-price', text: 'Dearest first' },
  { value: '-uptime', text: 'Highest uptime first' },
];

/** A service as a row, with its calls of the last 30 days. null if they are unknown. */
export interface Row extends Service {
  readonly calls: number | null;
}

/** Makes the rows: what can be called first, then the most used, then by name. */
export const index = (services: readonly Service[], calls: ReadonlyMap<string, number> | undefined): readonly Row[] =>
  services
    .map((service) => ({
      ...service,
      calls: calls?.get(`${service.primitive}/${service.name}`) ?? null,
    }))
    .sort(
      (a, b) =>
        Number(isCallable(b)) - Number(isCallable(a)) ||
        (b.calls ?? 0) - (a.calls ?? 0) ||
        b.requests - a.requests ||
        (a.name < b.name ? -1 : 1),
    );

/** Returns the services that match all filters but the search and the kind, which has a number for each kind. */
export function filter(services: readonly Row[], filters: Omit<Filters, 'q'>): readonly Row[] {
  const most = filters.price === '' ? Infinity : Number(filters.price);
  return services.filter(
    (service) =>
      service.typical_usd <= most &&
      (filters.provider === '' || service.providers.some(({ id }) => id === filters.provider)) &&
      (filters.takes === '' || service.input_modalities.includes(filters.takes)) &&
      (filters.gives === '' || service.output_modalities.includes(filters.gives)) &&
      (filters.param === '' || service.supported_parameters.includes(filters.param)) &&
      (filters.healthy === '' || isCallable(service)),
  );
}

/** The values that occur in the services, as options of a select. `first` is the text of the first option. */
export function optionsOf(
  first: string,
  values: Iterable<readonly [string, string]>,
): readonly { readonly value: string; readonly text: string }[] {
  const unique = [...new Map(values)].sort(([, a], [, b]) => a.localeCompare(b, 'en'));
  return [{ value: '', text: first }, ...unique.map(([value, text]) => ({ value, text }))];
}
