import type { Service } from '../../api/service.ts';

/** The filters as the address has them; the values here are those of an address without a query. */
export const DEFAULTS = {
  q: '',
  kind: 'all',
  provider: '',
  takes: '',
  gives: '',
  param: '',
  price: '',
  healthy: '',
  sort: 'name',
  down: '',
};
export type Filters = typeof DEFAULTS;

/** The most that a typical use may cost, in USD. */
export const PRICES = [
  { value: '', text: 'Any price' },
  { value: '0', text: 'Free' },
  { value: '0.001', text: 'Up to $0.001 a use' },
  { value: '0.01', text: 'Up to $0.01 a use' },
  { value: '0.1', text: 'Up to $0.10 a use' },
];

/** Orders by column, with `-` in front for the highest first: a phone shows no heads of columns. */
export const ORDERS = [
  { value: 'name', text: 'By name' },
  { value: 'price', text: 'Cheapest first' },
  { value: '-price', text: 'Dearest first' },
  { value: '-uptime', text: 'Highest uptime first' },
];
export const BY_CALLS = { value: '-calls', text: 'Most calls first' };

/** A service as a row: with its calls of 30 days, and null where they are not known. */
export interface Row extends Service {
  readonly calls: number | null;
  /** In small letters, so that a search does not change the case of all texts each time. */
  readonly words: string;
}

export const index = (services: readonly Service[], calls: ReadonlyMap<string, number> | undefined): readonly Row[] =>
  services.map((service) => ({
    ...service,
    calls: calls?.get(`${service.primitive}/${service.name}`) ?? null,
    words: [service.name, service.display_name, service.description, ...service.providers.map(({ name }) => name)]
      .join('\n')
      .toLowerCase(),
  }));

/** The services that match all filters but that of the kind, so that each kind can show its count. */
export function filter(services: readonly Row[], filters: Filters): readonly Row[] {
  const words = filters.q.toLowerCase().split(/\s+/).filter(Boolean);
  const most = filters.price === '' ? Infinity : Number(filters.price);
  return services.filter(
    (service) =>
      words.every((word) => service.words.includes(word)) &&
      service.typical_usd <= most &&
      (filters.provider === '' || service.providers.some(({ id }) => id === filters.provider)) &&
      (filters.takes === '' || service.input_modalities.includes(filters.takes)) &&
      (filters.gives === '' || service.output_modalities.includes(filters.gives)) &&
      (filters.param === '' || service.supported_parameters.includes(filters.param)) &&
      (filters.healthy === '' || service.status === 'healthy' || service.status === 'degraded'),
  );
}

/** Values that the services have, as options of a select with `first` in front. */
export function optionsOf(
  first: string,
  values: Iterable<readonly [string, string]>,
): readonly { readonly value: string; readonly text: string }[] {
  const unique = [...new Map(values)].sort(([, a], [, b]) => a.localeCompare(b, 'en'));
  return [{ value: '', text: first }, ...unique.map(([value, text]) => ({ value, text }))];
}
