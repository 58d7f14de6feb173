/**
 * Writes a JSON value by the JSON Canonicalization Scheme (RFC 8785): members sorted by their UTF-16 code units, no
 * white space, numbers and strings as in ECMAScript. Throws TypeError for a value that is not I-JSON: lone surrogates,
 * numbers that are not finite, values that JSON cannot write.
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      if (!value.isWellFormed()) throw new TypeError('A text with a lone surrogate has no canonical form');
      return JSON.stringify(value);
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`${value} has no canonical form`);
      return JSON.stringify(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object': {
      if (value === null) return 'null';
      if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
      const members = value as Readonly<Record<string, unknown>>;
      const written = Object.keys(members)
        .toSorted(byCodeUnits)
        .filter((key) => members[key] !== undefined)
        .map((key) => `${canonicalJson(key)}:${canonicalJson(members[key])}`);
      return `{${written.join(',')}}`;
    }
    default:
      throw new TypeError(`A ${typeof value} has no canonical form`);
  }
}

const byCodeUnits = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
