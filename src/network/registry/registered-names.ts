import { loadStatement, type Database } from '#store';
import { servicesFromText } from './stored-document.ts';

const LIST = loadStatement(import.meta.url, './sql/list-documents.sql');

/**
 * The names of all services that providers registered, including those of providers that are not connected. For
 * commands. A gateway uses its catalogue instead.
 */
export async function registeredNames(database: Pick<Database, 'query'>): Promise<ReadonlySet<string>> {
  const rows = await database.query(LIST);
  return new Set(rows.flatMap((row) => servicesFromText(row['document'] as string).map(({ service }) => service.name)));
}
