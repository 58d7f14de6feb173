/** Takes the secrets of one endpoint out of a text; the text itself where it has none. */
export type Scrub = (text: string) => string;

type Headers = Readonly<Record<string, string>>;

const REPLACEMENT = '[redacted]';
/** Shorter values are no secrets, and occur in ordinary words. */
const CHARACTERS_MIN = 8;

const scrubs = new WeakMap<Headers, Scrub>();

/**
 * Takes the values of an endpoint's own headers out of what its provider says: servers repeat the credentials that
 * they refuse. Found with and without their scheme, in base64, in the encoding of URLs, and in JSON, also where it
 * writes them with escapes. What a server cuts or masks itself is not found.
 */
export function scrubOf(headers: Headers): Scrub {
  let scrub = scrubs.get(headers);
  if (scrub === undefined) scrubs.set(headers, (scrub = createScrub(Object.values(headers))));
  return scrub;
}

/** For endpoints whose credentials this gateway does not know. */
export const scrubNothing: Scrub = (text) => text;

function createScrub(values: readonly string[]): Scrub {
  const secrets = [...new Set(values.flatMap(formsOf))].filter((form) => form.length >= CHARACTERS_MIN);
  if (secrets.length === 0) return scrubNothing;
  // The longest first: one may be a part of another. Base64 may be padded.
  const longestFirst = secrets.toSorted((a, b) => b.length - a.length).map((secret) => RegExp.escape(secret));
  const pattern = new RegExp(`(?:${longestFirst.join('|')})={0,2}`, 'g');
  const replace = (text: string): string => text.replace(pattern, REPLACEMENT);
  return (text) => {
    const plain = withoutEscapes(text) ?? text;
    const clean = replace(plain);
    return clean === plain ? text : clean;
  };
}

/** Errors are short. What is longer is searched as it is, as reading it takes time. */
const READ_MAX = 256 * 1024;

/** A JSON text as JSON.stringify writes it; null for any other text, and for one that is too long. */
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
  // RFC 7617: the name and the password are what is secret.
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
