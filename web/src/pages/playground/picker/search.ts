import type { Service } from '../catalogue.ts';

const PREFIXES = { 'model/': 'model', 'mcp/': 'tool', 'a2a/': 'agent', 'image/': 'image', 'video/': 'video' } as const;

interface Chosen {
  readonly service: Service;
  /** The chosen tool of a tool service. */
  readonly tool: string | null;
}

/**
 * Finds the service of an address, by its name or by its name in the chat API, such as `mcp/demo/tools/roll_dice`.
 * `kind` decides if services of two kinds have the same name.
 */
export function findService(services: readonly Service[], name: string, kind: string): Chosen | null {
  const named = services.filter((service) => service.name === name);
  const service = named.find((each) => each.kind === kind) ?? named[0];
  if (service) return { service, tool: null };
  for (const [prefix, wanted] of Object.entries(PREFIXES)) {
    if (!name.startsWith(prefix)) continue;
    const rest = name.slice(prefix.length);
    for (const each of services) {
      if (each.kind !== wanted) continue;
      if (each.name === rest) return { service: each, tool: null };
      if (wanted === 'tool' && rest.startsWith(`${each.name}/`))
        return { service: each, tool: rest.slice(each.name.length + 1) };
    }
  }
  return null;
}

/**
 * The service for a visitor who has not chosen one: a chat model before any other service, one that can be called
 * before one that cannot, a paid one before a free one, and of these the one with the most calls of the last hour.
 */
export function firstService(services: readonly Service[]): Service | null {
  const points = ({ model, callable }: Service): number =>
    (model?.makes === 'text' ? 4 : 0) + (callable ? 2 : 0) + ((model?.completion ?? 0) > 0 ? 1 : 0);
  const [first] = services.toSorted((a, b) => points(b) - points(a) || b.requests - a.requests);
  return first ?? null;
}
