import { accessOf } from '../../../src/server/accounts/access.ts';
import { createAggregate, type Aggregate, type AggregateOptions } from '../../../src/mcp/own/aggregate/aggregate.ts';
import { parseMessage, type RequestMessage } from '../../../src/gateway/json-rpc/message.ts';
import { serveRaw, startCatalogue, toolOffer, type CatalogueWorld } from '../catalogue/catalogue-world.ts';

/** What a server lists, by the member of the result; each list may be changed. */
export interface Lists {
  tools?: readonly object[];
  resources?: readonly object[];
  resourceTemplates?: readonly object[];
  prompts?: readonly object[];
}

export interface AggregateWorld extends CatalogueWorld {
  readonly aggregate: Aggregate;
  /** Has every server asked anew, until what they list is known. */
  refreshed(service: string): Promise<void>;
}

/** An aggregate over real servers, by the names of their services. */
export async function startAggregate(
  services: Readonly<Record<string, Lists>>,
  options: Partial<AggregateOptions> = {},
): Promise<AggregateWorld> {
  const offers = await Promise.all(
    Object.entries(services).map(async ([service, lists]) => {
      const { url } = await serveRaw((method) => {
        const member = MEMBERS[method];
        return member ? JSON.stringify({ [member]: lists[member] ?? [] }) : null;
      });
      return toolOffer(url, { service });
    }),
  );
  const world = await startCatalogue(offers);
  return {
    ...world,
    aggregate: createAggregate({
      catalogue: world.catalogue,
      version: '1.2.3',
      bridged: NOBODY,
      isStranger: () => false,
      ...options,
    }),
    async refreshed(service) {
      const changed = world.changed(service);
      world.now.advance(400_000);
      await changed;
    },
  };
}

/** No agents and no models. */
export const NOBODY: AggregateOptions['bridged'] = {
  find: async () => [],
  kinds: () => [],
  price: () => null,
  stranger: () => null,
};

const MEMBERS: Readonly<Record<string, keyof Lists>> = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
  'prompts/list': 'prompts',
};

export const ANYONE = { key: null } as const;

/** A caller whose key is limited to these patterns. */
export const keyFor = (...patterns: readonly string[]) => ({
  key: { hash: 'h', label: '', development: false, access: accessOf(patterns) },
});

export function request(method: string, params: object | string): RequestMessage {
  const written = typeof params === 'string' ? params : JSON.stringify(params);
  const message = parseMessage(`{ "jsonrpc":"2.0", "id" : 7,"method":${JSON.stringify(method)}, "params":${written}}`);
  if (message?.kind !== 'request') throw new Error('no request');
  return message;
}

/** The parsed result of a list, which must be one. */
export async function resultOf(
  asked: Awaited<ReturnType<Aggregate['list']>> | ReturnType<Aggregate['list']>,
): Promise<Record<string, unknown> & { nextCursor?: string }> {
  const answer = await asked;
  if ('error' in answer) throw new Error(answer.error.message);
  return JSON.parse(answer.result) as Record<string, unknown>;
}

export const namesIn = (items: unknown, key = 'name') =>
  (items as readonly Record<string, string>[]).map((item) => item[key]);
