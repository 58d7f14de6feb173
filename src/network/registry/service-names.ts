import { loadStatement, type Database, type Step } from '#store';
import { foldName, type Service } from '#config';
import { RegistrationError } from './document.ts';
import type { Connection } from './registry.ts';

const DELETE = loadStatement(import.meta.url, './sql/delete-service-names.sql');
const PUT = {
  sqlite: loadStatement(import.meta.url, './sql/put-service-names.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-put-service-names.sql'),
};
const FIND_LOOK_ALIKES = {
  sqlite: loadStatement(import.meta.url, './sql/find-look-alikes.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-find-look-alikes.sql'),
};

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
  { provider, id }: Connection,
  services: readonly Service[],
): readonly Step[] => [
  { statement: DELETE, params: [provider, id] },
  { statement: PUT[engine], params: [provider, toJson(services.map(({ name }) => name)), id] },
];
