import { withoutEndSlashes } from '#http';
import { type A2aVersion, versionOf } from '../wire/protocol.ts';
import { cardText, elementsOfValue, membersOfValue } from './card-content.ts';

/** The protocol facts in an agent's card. The hosts in a card are not used: requests go to the registered endpoint. */
export interface CardFacts {
  /** The versions in the agent's order of preference; never empty. */
  readonly versions: readonly A2aVersion[];
  readonly jsonRpc: readonly CardEndpoint[];
  /** Endpoints of HTTP+JSON. */
  readonly rest: readonly CardEndpoint[];
  readonly streaming: boolean;
  readonly push: boolean;
  /** The agent has an extended card. */
  readonly extended: boolean;
  /** The card names no address, like cards of the bare form. Messages are then posted to `/a2a` without an envelope. */
  readonly bare: boolean;
  /** Signatures are never verified, because a stranger chose the addresses of their keys. */
  readonly signed: 'none' | 'unverified';
}

interface CardEndpoint {
  readonly version: A2aVersion;
  /** The path below the registered endpoint: empty, or with a leading slash. */
  readonly path: string;
  /** The tenant that each request of 1.0 has to name; null for none. */
  readonly tenant: string | null;
}

export const DEFAULT_FACTS: CardFacts = {
  versions: ['0.3'],
  jsonRpc: [{ version: '0.3', path: '', tenant: null }],
  rest: [],
  streaming: false,
  push: false,
  extended: false,
  bare: false,
  signed: 'none',
};

const INTERFACES_MAX = 32;
const PATH_MAX = 512;
const TENANT_MAX = 256;

/**
 * Reads a card of either version. Never throws. `basePath`: the path of the registered endpoint; the paths in the card
 * are below it. null if it is not known (behind a tunnel): the paths in the card then count as paths below the
 * endpoint.
 */
export function readCard(card: unknown, basePath: string | null): CardFacts {
  const members = membersOfValue(card);
  const capabilities = membersOfValue(members['capabilities']);
  const endpoints = [...modernInterfaces(members), ...legacyInterfaces(members)].flatMap((entry) =>
    readInterface(entry, basePath),
  );
  const pick = (binding: string) =>
    distinct(
      endpoints
        .filter((entry) => entry.binding === binding)
        .map(({ version, path, tenant }) => ({ version, path, tenant })),
    );
  const jsonRpc = pick('JSONRPC');
  const rest = pick('HTTP+JSON');
  const spoken = jsonRpc.length + rest.length > 0;
  const bare =
    !spoken &&
    members['url'] === undefined &&
    members['supportedInterfaces'] === undefined &&
    typeof members['name'] === 'string';
  return {
    versions: spoken
      ? [...new Set(endpoints.filter(({ binding }) => CARRIED.has(binding)).map(({ version }) => version))]
      : DEFAULT_FACTS.versions,
    jsonRpc: spoken ? jsonRpc : DEFAULT_FACTS.jsonRpc,
    rest,
    // The bare form has no streams, whatever the card says.
    streaming: !bare && capabilities['streaming'] === true,
    push: capabilities['pushNotifications'] === true,
    extended: capabilities['extendedAgentCard'] === true || members['supportsAuthenticatedExtendedCard'] === true,
    bare,
    signed: elementsOfValue(members['signatures'], 1).length > 0 ? 'unverified' : 'none',
  };
}

const CARRIED: ReadonlySet<string> = new Set(['JSONRPC', 'HTTP+JSON']);

interface CardInterface {
  readonly url: unknown;
  readonly binding: unknown;
  readonly version: A2aVersion | null;
  readonly tenant: unknown;
}

function modernInterfaces(members: Readonly<Record<string, unknown>>): readonly CardInterface[] {
  return elementsOfValue(members['supportedInterfaces'], INTERFACES_MAX).map((element) => {
    const { url, protocolBinding, protocolVersion, tenant } = membersOfValue(element);
    return {
      url,
      binding: protocolBinding,
      version: protocolVersion === undefined ? '1.0' : readVersion(protocolVersion),
      tenant,
    };
  });
}

function legacyInterfaces(members: Readonly<Record<string, unknown>>): readonly CardInterface[] {
  const { url, preferredTransport = 'JSONRPC', protocolVersion } = members;
  if (typeof url !== 'string') return [];
  const version = protocolVersion === undefined ? '0.3' : readVersion(protocolVersion);
  const others = elementsOfValue(members['additionalInterfaces'], INTERFACES_MAX).map((element) => {
    const { url: other, transport } = membersOfValue(element);
    return { url: other, binding: transport, version, tenant: undefined };
  });
  return [{ url, binding: preferredTransport, version, tenant: undefined }, ...others];
}

/** Versions before 0.3 are read as 0.3. */
function readVersion(value: unknown): A2aVersion | null {
  return versionOf(value) ?? (typeof value === 'string' && /^0\.[0-2](?:\.\d{1,9})?$/.test(value) ? '0.3' : null);
}

function readInterface(
  { url, binding, version, tenant }: CardInterface,
  basePath: string | null,
): readonly (CardEndpoint & { readonly binding: string })[] {
  if (version === null || typeof url !== 'string' || typeof binding !== 'string') return [];
  const path = pathBelow(url, basePath);
  return path === null
    ? []
    : [{ binding: binding.toUpperCase(), version, path, tenant: cardText(tenant, TENANT_MAX) || null }];
}

/**
 * The path of a URL below the endpoint; null if the text is no URL. A URL outside the endpoint cannot be called, so its
 * path is empty and the endpoint itself is called.
 */
function pathBelow(text: string, basePath: string | null): string | null {
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return null;
  const path = url.pathname === '/' ? '' : url.pathname;
  const base = withoutEndSlashes(basePath ?? '');
  if (!`${path}/`.startsWith(`${base}/`)) return '';
  const below = path.slice(base.length);
  // A path with two leading slashes would name a host when it is resolved against a URL.
  return below.length > PATH_MAX || below.startsWith('//') ? '' : below === '/' ? '' : below;
}

function distinct(endpoints: readonly CardEndpoint[]): readonly CardEndpoint[] {
  return [...new Map(endpoints.map((endpoint) => [JSON.stringify(endpoint), endpoint])).values()];
}
