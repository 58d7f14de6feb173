/**
 * In order: the User-Agent of a browser also contains names that come later. For example, Edge also says Chrome and
 * Safari.
 */
const BROWSERS = [
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['HeadlessChrome/', 'Chrome'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
  ['curl/', 'curl'],
] as const;
const SYSTEMS = [
  ['Windows', 'Windows'],
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Mac OS X', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const;

/** A readable form of a User-Agent: `Firefox on Linux`. */
export function browserName(client: string): string {
  const named = (names: readonly (readonly [string, string])[]) => names.find(([part]) => client.includes(part))?.[1];
  const [browser, system] = [named(BROWSERS), named(SYSTEMS)];
  if (browser === undefined) return client === '' ? 'Unknown browser' : client.slice(0, 40);
  return system === undefined ? browser : `${browser} on ${system}`;
}
