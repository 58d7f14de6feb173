import { foldName, type ServiceConfig } from '#config';

/** Names of the gateway itself and of its operator, which no provider may have. */
const OF_OPERATOR: readonly string[] = ['tollgate', 'operator'];

/** Whether it is `tollgate` or `operator`, as `ofService` returns them. */
export const isOfGateway = (name: string): boolean => OF_OPERATOR.includes(name);

/** Names that connected providers cannot use, because they are the operator's or look like them. */
export interface ReservedNames {
  isProvider(name: string): boolean;
  /**
   * The operator's service with this name, with one that looks like it, or with the name before a `:` or `/` in this
   * one, because `own/chat:free` reads as a variant of `own/chat`. Also `tollgate` or `operator` for a name that is, or
   * begins with, what looks like one of them. null if a provider may use the name.
   */
  ofService(name: string): string | null;
  /** Takes the services of a new configuration file. */
  replace(services: readonly ServiceConfig[]): void;
}

/** `shared`: names of the operator's services under which providers may sell too. */
export function createReservedNames(
  services: readonly ServiceConfig[] = [],
  shared: readonly string[] = [],
): ReservedNames {
  const open = new Set(shared);
  let providers: ReadonlySet<string>;
  let own: ReadonlyMap<string, string>;
  const replace = (next: readonly ServiceConfig[]) => {
    providers = new Set([...OF_OPERATOR, ...next.map(({ service }) => service.providerName)].map(foldName));
    own = new Map(next.map(({ service: { name } }) => [foldName(name), name]));
  };
  replace(services);
  return {
    isProvider: (name) => providers.has(foldName(name)),
    ofService(name) {
      const folded = foldName(name);
      const found = own.get(folded) ?? null;
      if (found !== null) return found === name && open.has(name) ? null : found;
      for (const { index } of folded.matchAll(/[:/]/g)) {
        const above = own.get(folded.slice(0, index));
        if (above !== undefined) return above;
      }
      const author = foldName(name.split('/', 1)[0]!);
      return OF_OPERATOR.find((word) => foldName(word) === author) ?? null;
    },
    replace,
  };
}
