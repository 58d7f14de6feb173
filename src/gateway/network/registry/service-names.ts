import { foldName, type ServiceConfig, type Service } from '#config';
import { loadStatements, type Database, type Step } from '#store';
import { RegistrationError } from './document.ts';
import type { ProxyConnection } from './presence.ts';

const SQL = loadStatements(import.meta.url, './sql/service-names.sql', [
  'deleteServiceNames',
  'putServiceNames',
  'pgPutServiceNames',
  'findLookAlikes',
  'pgFindLookAlikes',
]);

const PUT = {
  sqlite: SQL.putServiceNames,
  postgres: SQL.pgPutServiceNames,
};

const FIND_LOOK_ALIKES = {
  sqlite: SQL.findLookAlikes,
  postgres: SQL.pgFindLookAlikes,
};

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
      const service = own.get(folded) ?? null;
      if (service !== null) return service === name && open.has(name) ? null : service;
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

/** A provider that has been away for this time no longer keeps others from names that look like its own. */
const KEPT_MS = 30 * 86_400_000;

const toJson = (names: Iterable<string>): string =>
  JSON.stringify([...new Set(names)].map((name) => [name, foldName(name)]));

/**
 * Rejects with RegistrationError if one of the names looks like the name of another provider's service without being
 * the same. The same name is allowed: it is one service that several providers offer. Two providers that register at
 * the same moment at two gateways can both pass.
 */
export async function refuseAmbiguousKeys(
  database: Pick<Database, 'query' | 'engine'>,
  names: readonly string[],
  { provider, now }: { readonly provider: string; readonly now: number },
): Promise<void> {
  if (names.length === 0) return;
  const rows = await database.query(FIND_LOOK_ALIKES[database.engine], [toJson(names), provider, now - KEPT_MS]);
  if (rows.length === 0) return;
  throw new RegistrationError(
    rows.map((row) => ({
      key: 'name',
      wrong: `"${row['wanted'] as string}" looks like "${row['taken'] as string}", which another provider offers`,
      right: 'the same name, if it is the same model, tool or agent; else a name that nobody takes for it',
    })),
  );
}

/** Writes the names of a provider's services, if the connection is still its newest one. */
export const namesSteps = (
  { engine }: Pick<Database, 'engine'>,
  { provider, id }: ProxyConnection,
  services: readonly Service[],
): readonly Step[] => [
  { statement: SQL.deleteServiceNames, params: [provider, id] },
  { statement: PUT[engine], params: [provider, toJson(services.map(({ name }) => name)), id] },
];
