/* Texts that may be shown or logged: without characters that nobody sees, and without secrets. */

/** The most characters of a service name, and of a name in an error message. */
export const SERVICE_NAME_MAX = 128;

/** Control, format (bidi overrides, zero width), line separators, surrogates, private and unassigned code points. */
export const UNPRINTABLE: RegExp = /[\p{C}\p{Zl}\p{Zp}]/u;
/** As UNPRINTABLE, without private and unassigned code points, which a font may show: for names that people choose. */
export const INVISIBLE: RegExp = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
/** As UNPRINTABLE, and blank letters: fillers of Hangul, selectors of variants, the empty cell of Braille. */
const UNSEEN = /[\p{C}\p{DI}\p{Zl}\p{Zp}\u{2800}]/gu;
/** Marks of one letter. More than four, the most that a script needs, cover the lines above and below. */
const MARKS = /(\p{M}{4})\p{M}+/gu;

/**
 * Makes untrusted text safe for a message: removes characters that nobody sees and marks that hide other text, and cuts
 * it at `max`.
 */
export function printable(text: string, max = SERVICE_NAME_MAX): string {
  // Cut first, so that a megabyte costs no more than a word.
  return text
    .slice(0, max * 2)
    .replace(UNSEEN, '')
    .replace(MARKS, '$1')
    .slice(0, max);
}

/** Characters that nobody sees but lines and tabs as `\u{…}`, so that whoever decides about a text sees all of it. */
export const visible = (text: string): string =>
  text.replace(UNSEEN, (one) => (one === '\n' || one === '\t' ? one : `\\u{${one.codePointAt(0)!.toString(16)}}`));

/** Untrusted text on one line: white space and unprintable characters become single spaces. */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{C}]+/gu, ' ').trim();
}

/** Replaces the secrets of one endpoint in a text. Returns the text itself if it contains no secret. */
export type Scrub = (text: string) => string;

type SecretHeaders = Readonly<Record<string, string>>;

const REDACTED = '[redacted]';
/** Shorter values are not secrets and occur in ordinary words. */
const CHARACTERS_MIN = 8;

const scrubs = new WeakMap<SecretHeaders, Scrub>();

/**
 * Removes the values of an endpoint's configured headers from its provider's messages, because servers repeat
 * credentials that they refuse. It finds values with and without their scheme, in base64, URL-encoded, and in JSON with
 * or without escapes. It does not find values that the server has cut or masked.
 */
export function scrubOf(headers: SecretHeaders): Scrub {
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
  const replace = (text: string): string => text.replace(pattern, REDACTED);
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

/** The sign-in header and its other names, in lower case. */
export const SIGN_IN_HEADERS = ['sign-in-with-x', 'x-sign-in-with-x', 'x-siwx'] as const;

/** Headers beside `Authorization` in which clients send an API key, in lower case. Google's clients use the second. */
export const KEY_HEADERS = ['x-api-key', 'x-goog-api-key'] as const;

/** The headers that may have a credential, in lower case. */
export const CREDENTIAL_HEADERS = ['authorization', ...KEY_HEADERS, ...SIGN_IN_HEADERS] as const;

/** Names whose values are never logged. Names are compared in lower case, with `_` as `-`. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  ...KEY_HEADERS,
  'api-key',
  'apikey',
  'x-admin-key',
  'admin-key',
  'adminkey',
  ...SIGN_IN_HEADERS,
  'siwx',
  'payment-signature',
  'x-payment',
  'x402/payment',
  'x402.payment.payload',
  'private-key',
  'privatekey',
  'treasury-key',
  'treasurykey',
  'secret-key',
  'secretkey',
  'secret',
  'client-secret',
  'password',
  'access-token',
  'refresh-token',
]);

const DEPTH_MAX = 6;
const KEYS_MAX = 200;
const TEXT_MAX = 8192;

/**
 * Caches the result for each name, because the same few names repeat on every line. The cache is bounded, because
 * metadata can have any names.
 */
const known = new Map<string, boolean>();
const KNOWN_MAX = 2000;

function isSecretName(name: string): boolean {
  let secret = known.get(name);
  if (secret === undefined) {
    secret = SECRET_NAMES.has(name.toLowerCase().replaceAll('_', '-'));
    if (known.size < KNOWN_MAX && name.length < 64) known.set(name, secret);
  }
  return secret;
}

/**
 * Masks every member with a secret name, reduces errors to type, code, message, stack and cause, and bounds depth,
 * width and text. Returns the value itself if there is nothing to change.
 */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return value.length > TEXT_MAX ? `${value.slice(0, TEXT_MAX)}…` : value;
  if (typeof value === 'bigint') return value.toString();
  if (value === null || typeof value !== 'object') return value;
  if (depth >= DEPTH_MAX) return '[too deep]';
  if (value instanceof Error) return redactError(value, depth);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof Date) return value;
  if (Array.isArray(value)) return redactList(value, depth);
  return redactRecord(value as Record<string, unknown>, depth);
}

function redactRecord(record: Record<string, unknown>, depth: number): unknown {
  let copy: Record<string, unknown> | null = null;
  let count = 0;
  for (const name of Object.keys(record)) {
    const before = record[name];
    const after =
      count >= KEYS_MAX
        ? undefined
        : isSecretName(name) && before !== null && before !== undefined
          ? REDACTED
          : redact(before, depth + 1);
    count += 1;
    if (after !== before) {
      copy ??= { ...record };
      copy[name] = after;
    }
  }
  return copy ?? record;
}

/** Also masks a value after a secret name in a flat list of names and values, the form of `rawHeaders`. */
function redactList(list: readonly unknown[], depth: number): unknown {
  return list.slice(0, KEYS_MAX).map((item, index) => {
    const before = list[index - 1];
    return typeof before === 'string' && typeof item === 'string' && isSecretName(before)
      ? REDACTED
      : redact(item, depth + 1);
  });
}

/** Other properties of errors are left out, because they may hold sockets, requests or headers with secrets. */
function redactError(error: Error, depth: number): Record<string, unknown> {
  const code = (error as { code?: unknown }).code;
  return {
    type: error.name,
    message: redact(error.message, depth + 1),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    stack: redact(error.stack ?? '', depth + 1),
    ...(error.cause === undefined ? {} : { cause: redact(error.cause, depth + 1) }),
  };
}

/** Matches secrets by their form, inside any text. */
const PATTERN = new RegExp(
  [
    // API keys of this gateway.
    String.raw`svc-(?:sk-v2|sk-dev|admin)-[1-9A-HJ-NP-Za-km-z]+`,
    // Client secrets.
    String.raw`\bek_[A-Za-z0-9_-]{32,}`,
    // The common `sk-…` form of provider keys. An escaped line break in JSON ends in a letter, so `\b` does not match
    // after it.
    String.raw`(?:\b|(?<=\\[nrt]))sk-[A-Za-z0-9_-]{16,}`,
    // The gateway's own messages show where a key belongs: `Bearer svc-admin-…`.
    String.raw`(?<=[Bb]earer )(?!svc-[a-z]+-…)[A-Za-z0-9._~+/=-]{8,}`,
    // The password of a connection URL.
    String.raw`(?<=:\/\/[^\s:@/"]{0,64}:)[^\s@/"]{1,256}(?=@)`,
    // `name: value` and `"name":"value"` inside texts, also with escaped quotes.
    String.raw`(?<=(?:sign-in-with-x|x-siwx|payment-signature|x-payment|api[_-]?key|private[_-]key|admin[_-]key)(?:\\?["'])?\s?[:=]\s?(?:\\?["'])?)(?!svc-[a-z]+-…)[A-Za-z0-9._~+/=-]{6,}`,
  ].join('|'),
  'gi',
);

/**
 * A quick test before PATTERN, which takes 5 µs on a line of 400 characters. A line without a hint cannot match
 * PATTERN, and nearly every line has no hint. The line is tested in lower case, because a test that ignores case takes
 * 1.7 µs, four times as long.
 */
const HINT = /sk-|svc-|ek_|earer |:\/\/|siwx|with-x|payment|[_-]key|apikey/;

/**
 * Returns a function that masks secrets in a log line: texts that look like a secret, and the given exact values
 * (provider keys, the admin key). Values shorter than 8 characters are ignored.
 */
export function createScrubber(values: readonly (string | null)[]): (line: string) => string {
  const exact = [...new Set(values)].filter((value): value is string => value !== null && value.length >= 8);
  // JSON escapes quotes, backslashes and control characters, so the escaped form is searched too.
  const forms = [...new Set(exact.flatMap((value) => [value, JSON.stringify(value).slice(1, -1)]))];
  const literal = forms.length === 0 ? null : new RegExp(forms.map((form) => RegExp.escape(form)).join('|'), 'g');
  return (line) => {
    const masked = literal === null ? line : line.replace(literal, REDACTED);
    return HINT.test(masked.toLowerCase()) ? masked.replace(PATTERN, REDACTED) : masked;
  };
}
