import { getOrInsert } from '#wire';
import { foldName, type ServiceConfig, type Service } from '#config';
import { loadStatements, type Database, type Step } from '#store';
import { RegistrationError } from './document.ts';

const SQL = loadStatements(import.meta.url, './sql/service-names.sql', [
  'deleteServiceNames',
  'putServiceNames',
  'pgPutServiceNames',
  'findTakenNames',
  'pgFindTakenNames',
]);

const PUT = {
  sqlite: SQL.putServiceNames,
  postgres: SQL.pgPutServiceNames,
};

const FIND_TAKEN = {
  sqlite: SQL.findTakenNames,
  postgres: SQL.pgFindTakenNames,
};

/** Names of the gateway itself and of its operator, which no provider may have. */
const OF_OPERATOR: readonly string[] = ['tollgate', 'operator'];

/** Whether it is `tollgate` or `operator`, as `ofService` returns them. */
export const isOfGateway = (name: string): boolean => OF_OPERATOR.includes(name);

/** Names that connected providers cannot use, because they are the operator's or look like them. */
export interface ReservedNames {
  isProvider(name: string): boolean;
  /**
   * An operator's service whose name has the same first part as this one, or one that looks like it, because a key
   * for `own/*` is for what the operator sells. Also `tollgate` or `operator` for a name that is, or begins with, what
   * looks like one of them. null if a provider may use the name.
   */
  ofService(name: string): string | null;
  /** The first part of a name, which can belong to a provider; empty if it is the operator's, or open to all. */
  partOf(name: string): string;
  replace(services: readonly ServiceConfig[]): void;
}

/**
 * `shared`: names of the operator's services under which providers may sell too, and beginnings such as `own/*` with
 * which each provider may name services of its own.
 */
export function createReservedNames(
  services: readonly ServiceConfig[] = [],
  shared: readonly string[] = [],
): ReservedNames {
  const open = new Set(shared);
  const isOpen = (name: string): boolean =>
    shared.some((one) => one.endsWith('/*') && name.startsWith(one.slice(0, -1)));
  let providers: ReadonlySet<string>;
  /** By first part: the services of the operator, by their names without what people overlook. */
  let own: ReadonlyMap<string, ReadonlyMap<string, string>>;
  const replace = (next: readonly ServiceConfig[]) => {
    providers = new Set([...OF_OPERATOR, ...next.map(({ service }) => service.providerName)].map(foldName));
    const parts = new Map<string, Map<string, string>>();
    for (const { service } of next)
      getOrInsert(parts, partOf(service.name), () => new Map()).set(foldName(service.name), service.name);
    own = parts;
  };
  replace(services);
  return {
    isProvider: (name) => providers.has(foldName(name)),
    ofService(name) {
      const part = partOf(name);
      const services = own.get(part);
      if (services === undefined) return OF_OPERATOR.find((word) => foldName(word) === part) ?? null;
      const alike = services.get(foldName(name));
      if (alike !== undefined) return alike === name && open.has(name) ? null : alike;
      const [first] = services.values();
      return open.has(name) || isOpen(name) ? null : first!;
    },
    partOf(name) {
      const part = partOf(name);
      return own.has(part) || isOpen(name) ? '' : part;
    },
    replace,
  };
}

/** The text before the first `/` or `:` of a name, without differences that people overlook. */
const partOf = (name: string): string => foldName(name.split(/[/:]/, 1)[0]!);

/** A provider that has been away for this time keeps neither its name nor others from those that look like its own. */
export const NAMES_KEPT_MS = 30 * 86_400_000;

const toJson = (names: Iterable<string>, reserved: Pick<ReservedNames, 'partOf'>): string =>
  JSON.stringify([...new Set(names)].map((name) => [name, foldName(name), reserved.partOf(name)]));

interface Namer {
  readonly provider: string;
  readonly now: number;
  readonly reserved: Pick<ReservedNames, 'partOf'>;
}

/**
 * Rejects with RegistrationError if one of the names looks like the name of another provider's service without being
 * the same, or if its first part is that of another provider's names: a key for `honest/tools/search` is for a tool of
 * `honest/tools`. The same name is allowed: it is one service that several providers offer. Two providers that register
 * at the same moment at two gateways can both pass.
 */
export async function refuseAmbiguousKeys(
  database: Pick<Database, 'query' | 'engine'>,
  names: readonly string[],
  { provider, now, reserved }: Namer,
): Promise<void> {
  if (names.length === 0) return;
  const rows = await database.query(FIND_TAKEN[database.engine], [
    toJson(names, reserved),
    provider,
    now - NAMES_KEPT_MS,
  ]);
  if (rows.length === 0) return;
  throw new RegistrationError(
    rows.map((row) => {
      const isAlike = Number(row['alike']) === 1;
      const like = isAlike ? 'looks like' : 'has the same first part as';
      return {
        key: 'name',
        wrong: `"${row['wanted'] as string}" ${like} "${row['taken'] as string}", which another provider offers`,
        right: isAlike
          ? 'the same name, if it is the same model, tool or agent; else a name that nobody takes for it'
          : 'a first part of your own, such as the name of your company, or the same name, if it is the same service. The operator can open a part to all in tunnel.shared_names',
      };
    }),
  );
}

/** Writes the names of a provider's services, if the connection is still its newest one. */
export const namesSteps = (
  { engine }: Pick<Database, 'engine'>,
  id: string,
  services: readonly Service[],
  { provider, now, reserved }: Namer,
): readonly Step[] => [
  { statement: SQL.deleteServiceNames, params: [provider, id] },
  {
    statement: PUT[engine],
    params: [
      provider,
      toJson(
        services.map(({ name }) => name),
        reserved,
      ),
      id,
      now - NAMES_KEPT_MS,
    ],
  },
];
