/**
 * Search parameters of a postgres:// URL that identify the database. The others describe the user and the connection.
 */
const NAMING = ['host', 'port', 'dbname', 'options'];
const DEFAULT_PORT = '5432';

/**
 * Identifies a database without user and password: `embedded`, or `postgres://host:port/name`. Two URLs with the same
 * result lead to the same database.
 */
export function databaseName(url: string | null): string {
  if (url === null) return 'embedded';
  const { hostname, port, pathname, searchParams } = new URL(url);
  const naming = NAMING.flatMap((name) => searchParams.getAll(name).map((value) => `${name}=${value}`));
  const address = hostname === '' ? '' : `${hostname}:${port || DEFAULT_PORT}`;
  return `postgres://${address}${pathname}${naming.length > 0 ? `?${naming.join('&')}` : ''}`;
}
