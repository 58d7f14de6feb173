/** The supported versions of A2A, as `Major.Minor`. */
const A2A_VERSIONS = ['0.3', '1.0'] as const;
export type A2aVersion = (typeof A2A_VERSIONS)[number];

/** The header with the version, in lower case as in Node. The query parameter has the same name in any case. */
export const VERSION_HEADER = 'a2a-version';

export type VersionReading =
  | { readonly version: A2aVersion; readonly fault?: never }
  | { readonly version?: never; readonly fault: string };

/**
 * The version of a request: from the header, else the query parameter (A2A 1.0 section 3.6.1), else 0.3 (section
 * 3.6.2). A patch number is ignored, as the specification requires. Any other version is a fault, which is answered
 * with VersionNotSupported.
 */
export function readVersion(header: unknown, query?: unknown): VersionReading {
  const asked = textOf(header) || textOf(query);
  if (asked === '') return { version: '0.3' };
  const version = versionOf(asked);
  return version === null
    ? { fault: `A2A version ${shown(asked)} is not supported here: use ${A2A_VERSIONS.join(' or ')}` }
    : { version };
}

/** The version in a text such as `1.0` or `0.3.0`; null for any other text. */
export function versionOf(text: unknown): A2aVersion | null {
  const found = typeof text === 'string' ? /^(\d{1,4}\.\d{1,4})(?:\.\d{1,9})?$/.exec(text.trim())?.[1] : undefined;
  return A2A_VERSIONS.find((version) => version === found) ?? null;
}

/** Reads a repeated value as one value if all its copies are equal. */
function textOf(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'string' && !value.includes(',')) return value.trim();
  const values = (Array.isArray(value) ? value : [value]).filter((one) => one !== undefined && one !== null);
  const texts = new Set(
    values.flatMap((one) => (typeof one === 'string' ? one.split(',') : ['?'])).map((one) => one.trim()),
  );
  texts.delete('');
  return [...texts].join(', ');
}

const shown = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);

/** The query parameter with the version, its name in any case; undefined if it is absent. `query` is decoded. */
export function versionQuery({ query }: { readonly query: unknown }): unknown {
  if (typeof query !== 'object' || query === null) return undefined;
  for (const [name, value] of Object.entries(query)) if (name.toLowerCase() === VERSION_HEADER) return value;
  return undefined;
}
