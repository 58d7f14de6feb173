import type { AgentCard, SecurityScheme } from './agent-card.ts';

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
