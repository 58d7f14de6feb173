/** Replaces the secrets of one endpoint in a text. Returns the text itself if it contains no secret. */
export type Scrub = (text: string) => string;

type Headers = Readonly<Record<string, string>>;

const REPLACEMENT = '[redacted]';
/** Shorter values are not secrets and occur in ordinary words. */
const CHARACTERS_MIN = 8;

const scrubs = new WeakMap<Headers, Scrub>();

/**
 * Removes the values of an endpoint's configured headers from its provider's messages, because servers repeat
 * credentials that they refuse. It finds values with and without their scheme, in base64, URL-encoded, and in JSON with
 * or without escapes. It does not find values that the server has cut or masked.
 */
export function scrubOf(headers: Headers): Scrub {
  let scrub = scrubs.get(headers);
  if (scrub === undefined) scrubs.set(headers, (scrub = createScrub(Object.values(headers))));
  return scrub;
}

/** For endpoints whose credentials the gateway does not know. */
export const scrubNothing: Scrub = (text) => text;

function createScrub(values: readonly string[]): Scrub {
  const secrets = [...new Set(values.flatMap(formsOf))].filter((form) => form.length >= CHARACTERS_MIN);
  if (secrets.length === 0) return scrubNothing;
  // The longest form comes first, because one form may be part of another. Base64 may have padding.
  const longestFirst = secrets.toSorted((a, b) => b.length - a.length).map((secret) => RegExp.escape(secret));
  const pattern = new RegExp(`(?:${longestFirst.join('|')})={0,2}`, 'g');
  const replace = (text: string): string => text.replace(pattern, REPLACEMENT);
  return (text) => {
    const plain = withoutEscapes(text) ?? text;
    const clean = replace(plain);
    return clean === plain ? text : clean;
  };
}

/** Errors are short. A longer text is not parsed as JSON, because that takes time; it is searched as it is. */
const READ_MAX = 256 * 1024;

/** Rewrites a JSON text without needless escapes; null if the text is not JSON or too long. */
function withoutEscapes(text: string): string | null {
  if (text.length > READ_MAX) return null;
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return null;
  }
}

function formsOf(value: string): string[] {
  const [, scheme = '', token = value] = /^(\w+) +(.+)$/.exec(value) ?? [];
  const plain = token === value ? [value] : [value, token];
  // RFC 7617: the secret is the name and the password.
  if (scheme.toLowerCase() === 'basic') {
    const pair = Buffer.from(token, 'base64').toString('utf8');
    plain.push(pair, pair.slice(pair.indexOf(':') + 1));
  }
  return plain.flatMap((secret) => [
    secret,
    JSON.stringify(secret).slice(1, -1),
    Buffer.from(secret).toString('base64').replace(/=+$/, ''),
    Buffer.from(secret).toString('base64url'),
    encodeURIComponent(secret),
  ]);
}
