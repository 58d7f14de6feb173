import { answerOfDocument } from '../app/boot.ts';
import { queryOptions, useQuery, type UseQueryResult } from '@tanstack/react-query';
import type { Kind } from '../ui/kinds.ts';
import type { Pricing, ToolPrice } from './pricing.ts';
import type { Service, ServiceStatus } from './service.ts';
import { call, data } from './request.ts';

export type { Pricing } from './pricing.ts';
export { isCallable, type Service, type ServiceStatus } from './service.ts';

/** The recent health of an offer. */
export interface HealthState {
  readonly status: 'healthy' | 'cooling_down' | 'away';
  readonly uptime_last_1h: number | null;
  readonly latency: { readonly p50: number; readonly p95: number } | null;
  readonly throughput: { readonly p50: number } | null;
  readonly requests: number;
  readonly flags: Readonly<Record<string, number>>;
  readonly compliance: number;
  readonly price_raised: { readonly before: Pricing; readonly effective_at: string } | null;
}

/** The offer of a service by one provider. */
export interface ServiceOffer extends HealthState {
  readonly id: string;
  readonly name: string;
  readonly pricing: Pricing;
  readonly typical_usd: number;
  readonly reached: 'direct' | 'tunnel';
  readonly listed_since: string;
  readonly context_length: number | null;
  readonly max_output_tokens: number | null;
}

export type ServiceDetail = Omit<Service, 'providers'> & { readonly providers: readonly ServiceOffer[] };

export interface Provider<L = ProviderListing> {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly services: number;
  readonly primitives: readonly Kind[];
  readonly status: ServiceStatus;
  readonly reached: 'direct' | 'tunnel';
  readonly listed_since: string;
  readonly uptime: number | null;
  readonly requests: number;
  readonly flags: Readonly<Record<string, number>>;
  readonly listings: readonly L[];
}

interface ProviderListing {
  readonly name: string;
  readonly display_name: string;
  readonly primitives: readonly Kind[];
  readonly status: ServiceStatus;
}

/** A service of a provider, with a route for each primitive under which it can be called. */
export interface ProviderListingDetail extends ProviderListing {
  readonly description: string;
  readonly doors: readonly (HealthState & { readonly primitive: Kind; readonly pricing: Pricing })[];
}

/** A tool of a tool service. */
export interface Tool {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  readonly price: ToolPrice;
  readonly input_schema?: unknown;
}

const named = (name: string) => name.split('/').map(encodeURIComponent).join('/');

/** The path of a service's page. */
export const servicePath = ({ primitive, name }: { readonly primitive: Kind; readonly name: string }): string =>
  `/${primitive}s/${named(name)}`;

/** The path of a provider's page. */
export const providerPath = (id: string): string => `/providers/${encodeURIComponent(id)}`;

/** Requests all services of all kinds. */
export const servicesQuery = queryOptions({
  queryKey: ['services'],
  queryFn: () => data<readonly Service[]>('/api/v1/services'),
});

/** All services of all kinds. */
export const useServices = (): UseQueryResult<readonly Service[]> => useQuery(servicesQuery);

/** If the document contains the service, it is available at once, so that the first render is complete. */
export function useService(kind: Kind, name: string): UseQueryResult<ServiceDetail> {
  const path = `/api/v1/services/${kind}/${named(name)}`;
  const { data: first } = (answerOfDocument(path) ?? {}) as { readonly data?: ServiceDetail };
  return useQuery<ServiceDetail>({
    queryKey: ['services', kind, name],
    queryFn: () => data<ServiceDetail>(path),
    ...(first === undefined ? {} : { initialData: first, initialDataUpdatedAt: performance.timeOrigin }),
  });
}

export const useProviders = (): UseQueryResult<readonly Provider[]> =>
  useQuery({ queryKey: ['providers'], queryFn: () => data<readonly Provider[]>('/api/v1/providers') });

export const useProvider = (id: string): UseQueryResult<Provider<ProviderListingDetail>> =>
  useQuery({
    queryKey: ['providers', id],
    queryFn: () => data<Provider<ProviderListingDetail>>(`/api/v1/providers/${encodeURIComponent(id)}`),
  });

/** The tools of a tool service, with their schemas. null until its servers have listed them. */
export const useTools = (service: string): UseQueryResult<readonly Tool[] | null> =>
  useQuery({
    queryKey: ['tools', service],
    queryFn: async () => {
      const query = new URLSearchParams({ service, schemas: 'true' });
      const found = await data<readonly { readonly tools?: readonly Tool[] | null }[]>(`/api/v1/tools?${query}`);
      return found[0]?.tools ?? null;
    },
  });

/** An agent's card, as its provider wrote it. */
export const useAgentCard = (agent: string): UseQueryResult<Readonly<Record<string, unknown>>> =>
  useQuery({
    queryKey: ['cards', agent],
    queryFn: () => call<Readonly<Record<string, unknown>>>(`/a2a/${named(agent)}/.well-known/agent-card.json`),
  });
