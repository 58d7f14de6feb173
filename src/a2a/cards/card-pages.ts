import { createHash } from 'node:crypto';
import { type RequestedAddress, type OwnOrigin, parseHost } from '#security';
import type { A2aVersion } from '../wire/protocol.ts';
import type { AgentCard, SecurityScheme } from './agent-card.ts';
import { signCard, type SignBytes } from './sign-card.ts';

/** A card as bytes, with its strong ETag. */
export interface CardPage {
  readonly body: Buffer;
  readonly etag: string;
  /** When this gateway first wrote the card, in epoch milliseconds; null if it is written for each request. */
  readonly modifiedAt: number | null;
}

export interface CardOrigin {
  /** The URL without a trailing slash. */
  readonly url: string;
  /**
   * The operator named this origin, so cards for it are signed. A request with another Host gets a card without a
   * signature.
   */
  readonly known: boolean;
}

interface CardPages {
  /**
   * The cached page for the same `content`, version and origin. Without one, writes the page of the card from `make`.
   */
  page(content: string, version: A2aVersion, origin: CardOrigin, make: () => AgentCard): CardPage;
}

interface CardPagesOptions {
  readonly sign: SignBytes | null;
  readonly bytesMax?: number;
  /** Epoch milliseconds. Default: the system clock. */
  readonly date?: () => number;
}

/** Writes, signs and caches cards. The cache drops the least recently requested cards first. */
export function createCardPages({ sign, bytesMax = 16 * 1024 * 1024, date = Date.now }: CardPagesOptions): CardPages {
  const pages = new Map<string, CardPage>();
  let bytes = 0;
  const sizeOf = (key: string, { body }: CardPage) => key.length * 2 + body.byteLength;

  function write(card: AgentCard, version: A2aVersion, { url, known }: CardOrigin): CardPage {
    const view = version === '1.0' ? card : withLegacyMembers(card);
    // The card gets two signatures. Verifiers that know only 1.0 check only the members of 1.0; others check all
    // members.
    const signed = sign && known ? signCard(view, sign, url, view === card ? [] : [card]) : view;
    const body = Buffer.from(JSON.stringify(signed));
    return {
      body,
      etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
      modifiedAt: known ? date() : null,
    };
  }

  return {
    page(content, version, origin, make) {
      // Pages for unknown Hosts are not cached. Otherwise strangers could fill the cache with invented Hosts.
      if (!origin.known) return write(make(), version, origin);
      const key = JSON.stringify([version, origin.url, content]);
      const page = pages.get(key) ?? write(make(), version, origin);
      if (pages.delete(key)) bytes -= sizeOf(key, page);
      pages.set(key, page);
      bytes += sizeOf(key, page);
      for (const [oldest, old] of pages) {
        if (bytes <= bytesMax || oldest === key) break;
        pages.delete(oldest);
        bytes -= sizeOf(oldest, old);
      }
      return page;
    },
  };
}

/**
 * Adds the members that readers of 0.3 need. Readers of 1.0 ignore them. A client that names no version gets this card,
 * because some clients of 1.0 name no version when they request a card.
 */
export function withLegacyMembers(card: AgentCard): Readonly<Record<string, unknown>> {
  const [primary, ...others] = card.supportedInterfaces.filter(({ protocolVersion }) => protocolVersion === '0.3');
  if (!primary) throw new TypeError('The card names no interface of 0.3');
  const { extendedAgentCard } = card.capabilities;
  return {
    ...card,
    protocolVersion: '0.3',
    url: primary.url,
    preferredTransport: primary.protocolBinding,
    additionalInterfaces: [primary, ...others].map(({ url, protocolBinding }) => ({ url, transport: protocolBinding })),
    ...(extendedAgentCard ? { supportsAuthenticatedExtendedCard: true } : {}),
    securitySchemes: Object.fromEntries(
      Object.entries(card.securitySchemes).map(([name, scheme]) => [name, { ...legacyScheme(scheme), ...scheme }]),
    ),
    security: card.securityRequirements.map(({ schemes }) =>
      Object.fromEntries(Object.entries(schemes).map(([name, { list }]) => [name, list])),
    ),
  };
}

/** 0.3 names the kind of a scheme in `type`. 1.0 has a single member, whose name is the kind. */
function legacyScheme(scheme: SecurityScheme): Readonly<Record<string, string>> {
  if ('httpAuthSecurityScheme' in scheme) return { type: 'http', ...scheme.httpAuthSecurityScheme };
  if ('openIdConnectSecurityScheme' in scheme) return { type: 'openIdConnect', ...scheme.openIdConnectSecurityScheme };
  const { location, ...rest } = scheme.apiKeySecurityScheme;
  return { type: 'apiKey', in: location, ...rest };
}

interface CardOriginOptions {
  /** The public origin of this gateway; null if it is not known. */
  readonly publicUrl: string | null;
  /** The host names of this gateway, with a port if it is not the default of the scheme. */
  readonly domains: readonly string[];
  readonly ownOrigin: OwnOrigin;
  /** The origin at which the gateway listens; null if it listens at every address of its machine. */
  readonly listening: () => string | null;
}

export const NO_ORIGIN =
  'The Host header is not a name of this gateway that an agent card can have: send an IP address of the gateway, or a name that it knows. If clients use this name, the operator sets server.public_url';

/**
 * Finds the origin for the card of a request: the operator's public URL, else the Host of the request if that is the
 * gateway's, else where the gateway listens. null if that is at every address, or if the Host is not valid.
 */
export function createCardOrigin({
  publicUrl,
  domains,
  ownOrigin,
  listening,
}: CardOriginOptions): (request: RequestedAddress) => CardOrigin | null {
  const names = new Set(domains.map((domain) => domain.toLowerCase()));
  return (request) => {
    const own = ownOrigin(request);
    if (own !== null) return { url: own, known: publicUrl !== null || names.has(new URL(own).host) };
    const url = parseHost(request.host) === null ? null : listening();
    return url === null ? null : { url, known: false };
  };
}
