/** Bounds for the parameters of an extension. */
const VALUES_MAX = 500;
const TEXT_MAX = 8_192;
const KEY_MAX = 128;

const PROTOTYPE_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);
const NOWHERE = 'nowhere.invalid';
const HOSTLESS: ReadonlySet<string> = new Set(['javascript:', 'data:', 'vbscript:', 'file:', 'blob:']);

type Plain = string | number | boolean | readonly Plain[] | { readonly [key: string]: Plain };

/**
 * The parameters of an untrusted extension, cleaned for a signed card. Empty values and null are dropped, because
 * verifiers differ in how they treat them. Names of Object.prototype are dropped. URLs are dropped, because a call to
 * one would bypass the gateway. undefined if nothing is left.
 */
export function plainParams(value: unknown): { readonly [key: string]: Plain } | undefined {
  let left = VALUES_MAX;

  const read = (one: unknown): Plain | undefined => {
    if (left-- <= 0) return undefined;
    if (typeof one === 'string')
      return one !== '' && one.length <= TEXT_MAX && one.isWellFormed() && !isAddress(one) ? one : undefined;
    if (typeof one === 'boolean') return one;
    if (typeof one === 'number') return Number.isFinite(one) ? one : undefined;
    if (Array.isArray(one)) {
      const kept = one
        .slice(0, left)
        .map(read)
        .filter((element) => element !== undefined);
      return kept.length > 0 ? kept : undefined;
    }
    return typeof one === 'object' && one !== null ? readObject(one as Readonly<Record<string, unknown>>) : undefined;
  };

  const readObject = (one: Readonly<Record<string, unknown>>): { readonly [key: string]: Plain } | undefined => {
    const kept: [string, Plain][] = [];
    for (const key of Object.keys(one)) {
      if (left <= 0) break;
      if (key === '' || key.length > KEY_MAX || !key.isWellFormed() || PROTOTYPE_KEYS.has(key) || isAddress(key))
        continue;
      const plain = read(one[key]);
      if (plain !== undefined) kept.push([key, plain]);
    }
    return kept.length > 0 ? Object.fromEntries(kept) : undefined;
  };

  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? readObject(value as Readonly<Record<string, unknown>>)
    : undefined;
}

/**
 * Whether a URL parser would read a host in a text: true for `https:host` and `\\host`, false for `km/h` and `note: 1`.
 */
function isAddress(text: string): boolean {
  const url = URL.parse(text) ?? URL.parse(text, `https://${NOWHERE}`);
  return url !== null && (HOSTLESS.has(url.protocol) || (url.host !== '' && url.host !== NOWHERE));
}
