import { answerOfDocument } from '../app/boot.ts';
import { queryOptions, useQuery, type UseQueryResult } from '@tanstack/react-query';
import type { Kind } from '../ui/kinds.ts';
import type { Service } from './service.ts';
import { api, type AnswerOf, data, type Schemas } from './client.ts';
import { request } from './request.ts';

export type { Pricing } from './pricing.ts';
export { isCallable, type Service, type ServiceStatus } from './service.ts';

/** A service, with its offers. */
export type ServiceDetail = Schemas['ServiceDetail'];
/** The offer of a service by one provider. */
export type ServiceOffer = ServiceDetail['providers'][number];
/** The recent health of an offer. */
export type HealthState = Pick<
  ServiceOffer,
  | 'status'
  | 'uptime_last_1h'
  | 'latency'
  | 'throughput'
  | 'cache_hit_rate'
  | 'effective_prompt_price'
  | 'requests'
  | 'flags'
  | 'compliance'
  | 'price_raised'
>;
export type Provider = AnswerOf<'listProviders'>['data'][number];
export type ProviderDetail = AnswerOf<'showAProvider'>['data'];
/** A tool of a tool service. */
export type Tool = Schemas['Tool'];

const named = (name: string) => name.split('/').map(encodeURIComponent).join('/');

/** The path of a service's page. */
export const servicePath = ({ primitive, name }: { readonly primitive: Kind; readonly name: string }): string =>
  `/${primitive}s/${named(name)}`;

/** The path of a provider's page. */
export const providerPath = (id: string): string => `/providers/${encodeURIComponent(id)}`;

/** Requests all services of all kinds. */
export const servicesQuery = queryOptions({
  queryKey: ['services'],
  queryFn: () => data(api.GET('/api/v1/services')),
});

/** The tools of all tool services, without their schemas. */
export const toolsQuery = queryOptions({
  queryKey: ['tools'],
  staleTime: 60_000,
  queryFn: () => data(api.GET('/api/v1/tools')),
});

/** Returns a function that gives the tools of a service by its name, as far as its server has listed them. */
export function toolTable(services: readonly { readonly id: string; readonly tools?: readonly Tool[] | null }[] = []) {
  const table = new Map(services.map(({ id, tools }) => [id, tools ?? []]));
  return (name: string): readonly Tool[] => table.get(name) ?? [];
}

/** All services of all kinds. */
export const useServices = (): UseQueryResult<readonly Service[]> => useQuery(servicesQuery);

/** If the document contains the service, it is available at once, so that the first render is complete. */
export function useService(kind: Kind, name: string): UseQueryResult<ServiceDetail> {
  const path = `/api/v1/services/${kind}/${named(name)}`;
  const { data: first } = (answerOfDocument(path) ?? {}) as { readonly data?: ServiceDetail };
  return useQuery<ServiceDetail>({
    queryKey: ['services', kind, name],
    queryFn: () =>
      data(api.GET('/api/v1/services/{primitive}/{name}', { params: { path: { primitive: kind, name } } })),
    ...(first === undefined ? {} : { initialData: first, initialDataUpdatedAt: performance.timeOrigin }),
  });
}

export const useProviders = (): UseQueryResult<readonly Provider[]> =>
  useQuery({ queryKey: ['providers'], queryFn: () => data(api.GET('/api/v1/providers')) });

export const useProvider = (id: string): UseQueryResult<ProviderDetail> =>
  useQuery({
    queryKey: ['providers', id],
    queryFn: () => data(api.GET('/api/v1/providers/{id}', { params: { path: { id } } })),
  });

/** The tools of a tool service, with their schemas. null until its servers have listed them. */
export const useTools = (service: string): UseQueryResult<readonly Tool[] | null> =>
  useQuery({
    queryKey: ['tools', service],
    queryFn: async () => {
      const found = await data(api.GET('/api/v1/tools', { params: { query: { service, schemas: true } } }));
      return found[0]?.tools ?? null;
    },
  });

/** An agent's card, as its provider wrote it. */
export const useAgentCard = (agent: string): UseQueryResult<Readonly<Record<string, unknown>>> =>
  useQuery({
    queryKey: ['cards', agent],
    queryFn: async () => {
      const answer = await request(`/a2a/${named(agent)}/.well-known/agent-card.json`);
      return (await answer.json()) as Readonly<Record<string, unknown>>;
    },
  });
