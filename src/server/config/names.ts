import { SERVICE_NAME_MAX, UNPRINTABLE, parseHost } from '#security';

/** The kinds of services. They are peers, because all use the same pipeline and the same billing. */
export const PRIMITIVES = ['model', 'tool', 'agent', 'image', 'video'] as const;
export type Primitive = (typeof PRIMITIVES)[number];

/** Suffixes with which consumers choose how a provider is picked. The name of a service cannot end in one. */
export const SORT_SUFFIXES = { ':floor': 'price', ':nitro': 'throughput' } as const;

const SERVICE_NAME = /^[A-Za-z0-9._/:-]{1,128}$/;
const PROVIDER_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?$/;
/**
 * A base58 Ed25519 key or an EVM address before the first colon. This is the direct form of a name, which chooses a
 * provider's service.
 */
const DIRECT_FORM = /^(?:[1-9A-HJ-NP-Za-km-z]{32,44}|0[xX][0-9A-Fa-f]{40}):/;
/**
 * A public key in any case, because names are compared case-insensitively. A provider whose name is another provider's
 * key would be chosen instead of that provider.
 */
const PUBLIC_KEY = /^(?:[1-9A-Z]{32,44}|0x[0-9a-f]{40})$/i;
const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['prototype', ...Object.getOwnPropertyNames(Object.prototype)]);

/** True for names that every object inherits, such as `constructor`, which a lookup by name would find. */
export function isPrototypeName(name: string): boolean {
  return PROTOTYPE_NAMES.has(name);
}

/**
 * Returns the fault of a service's name. null for a valid name. Names are used in URLs, headers and keys, and must not
 * be mistaken for another service.
 */
export function serviceNameFault(name: string): string | null {
  if (!SERVICE_NAME.test(name)) return `must be 1 to ${SERVICE_NAME_MAX} characters of A-Z a-z 0-9 . _ / : -`;
  if (name.includes('..') || name.includes('//')) return 'must not contain ".." or "//"';
  if (/^[/:]|[/:]$/.test(name)) return 'must not begin or end with "/" or ":"';
  if (name.split('/').some((part) => part === '.' || PROTOTYPE_NAMES.has(part)))
    return 'must not be a reserved word such as "constructor"';
  const suffix = Object.keys(SORT_SUFFIXES).find((reserved) => name.endsWith(reserved));
  if (suffix) return `must not end in "${suffix}", which consumers append to choose a provider`;
  if (DIRECT_FORM.test(name)) return 'must not begin with a public key, which is the direct form of a name';
  return null;
}

/** `<prefix><name>` is an alias of the model `<name>`, for clients that show only such names. */
export const ALIAS_PREFIX = 'anthropic/';

/**
 * Prefixes with which a route names other services: those of other protocols, such as `a2a/weather` at the chat route,
 * and models by their aliases. The key is the table of the blocks that the route itself serves.
 */
const BRIDGED: Readonly<Record<string, readonly string[]>> = {
  models: ['a2a/', 'mcp/', 'image/', 'video/', ALIAS_PREFIX],
  tools: ['a2a/', 'model/', 'image/', 'video/'],
  agents: ['mcp/', 'model/', 'image/', 'video/'],
};

/** The routes of HTTP+JSON below the address of an agent. */
const ROUTE_LIKE = /(?:^|\/)(?:message:|tasks(?:\/|$)|card$|extendedAgentCard$)/i;

/**
 * Returns the fault of a service's name in the registration of a connected provider. null for a valid name. A service
 * with an invalid name would get calls that are meant for another provider's service.
 */
export function claimedNameFault(table: string, name: string): string | null {
  if (table === 'agents' && ROUTE_LIKE.test(name))
    return 'reads like a route of another agent, such as /tasks or /card';
  const kind = PRIMITIVES.find((one) => name.toLowerCase().startsWith(`${one}:`));
  if (kind !== undefined) return `begins with "${kind}:", which limits what a key may call to services of this kind`;
  const prefix = (Object.hasOwn(BRIDGED, table) ? BRIDGED[table]! : []).find((one) => name.startsWith(one));
  return prefix === undefined
    ? null
    : `begins with "${prefix}", by which others' services are called at the same address`;
}

/**
 * Returns the fault of a provider's name. null for a valid name. The name is sent in the `x-provider` header, and is
 * compared case-insensitively.
 */
export function providerNameFault(name: string): string | null {
  if (!PROVIDER_NAME.test(name))
    return 'must be 1 to 64 characters of A-Z a-z 0-9 space . _ -, beginning with a letter or digit';
  if (name.includes('..')) return 'must not contain ".."';
  if (PROTOTYPE_NAMES.has(name)) return 'must not be a reserved word such as "constructor"';
  if (PUBLIC_KEY.test(name)) return 'must not look like a public key, by which consumers choose a provider';
  return null;
}

/** Returns the fault of a display name. null for a valid name. */
export function displayNameFault(name: string): string | null {
  if (name.length === 0 || name.length > 200) return 'must be 1 to 200 characters';
  if (UNPRINTABLE.test(name)) return 'must not contain control or text-direction characters';
  if (name.trim() !== name) return 'must not begin or end with a space';
  return null;
}

/** Letters and digits that are easily taken for another one, in lower case. Pairs come first. */
const LOOK_ALIKES: readonly (readonly [RegExp, string])[] = [
  [/rn/g, 'm'],
  [/nn/g, 'm'],
  [/vv/g, 'w'],
  [/0/g, 'o'],
  [/[1i]/g, 'l'],
];

/**
 * A name without what people overlook: case, spaces, dots, hyphens and underscores, and letters and digits that look
 * like others. Two names that fold to the same text look alike: `honest/M-1` and `Honest/ml`.
 */
export function foldName(name: string): string {
  const plain = name.toLowerCase().replaceAll(/[ ._-]/g, '');
  return LOOK_ALIKES.reduce((text, [pattern, like]) => text.replaceAll(pattern, like), plain);
}

/**
 * Returns the fault of a domain for sign-in. null for a valid one: a host in lower case, as browsers write it, with the
 * port if it is not the default.
 */
export function domainFault(domain: string): string | null {
  const url = URL.parse(`https://${domain}`);
  if (!url || url.host === '' || url.pathname !== '/' || url.search || url.hash || url.username || url.password)
    return 'is not a host';
  if (url.host !== domain && `${url.host}:443` !== domain) return `is written ${url.host}`;
  return null;
}

/**
 * Returns the fault of a host name of this gateway. null for a valid one: as browsers write it, without a port, and
 * with brackets around IPv6 addresses.
 */
export function hostNameFault(name: string): string | null {
  const host = parseHost(name);
  if (host === null) return 'is not a host name';
  if (host.port !== '') return 'must not have a port';
  return host.name === name ? null : `is written ${host.name}`;
}

/**
 * Returns the fault of a web origin. null for a valid one, as browsers write it. Any scheme is allowed, because apps
 * and extensions have their own.
 */
export function originFault(origin: string): string | null {
  if (origin === 'null') return null;
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]{1,255}$/.test(origin))
    return 'is not an origin: a scheme and a host, and nothing behind them';
  const url = URL.parse(origin);
  if (!url) return 'is not a URL';
  return url.origin === 'null' || url.origin === origin ? null : `is written ${url.origin}`;
}

/** The path at which a provider's proxy opens its tunnel, relative to the gateway's address. */
export const TUNNEL_PATH = '/api/v1/provider/tunnel';
