import type { AgentCard } from './agent-card.ts';

/** The OAuth settings that a card shows. */
export interface CardAuth {
  /** URL of the metadata of the issuer of access tokens; null if no tokens are accepted. */
  readonly openIdConnectUrl: string | null;
  /** Scopes that a client may request for a token. */
  readonly scopes: readonly string[];
}

/**
 * API keys have no scopes, but the list must not be empty. Some verifiers of a card leave out an empty list and others
 * do not, and with the list the name of the required scheme is lost.
 */
const ANY_KEY = ['call'];

/** How clients authenticate: with an API key in one of two headers, or with an access token if an issuer is known. */
export function securityOf({
  openIdConnectUrl,
  scopes,
}: CardAuth): Pick<AgentCard, 'securitySchemes' | 'securityRequirements'> {
  const token = openIdConnectUrl !== null;
  return {
    securitySchemes: {
      bearer: { httpAuthSecurityScheme: { description: 'An API key of this gateway', scheme: 'bearer' } },
      apiKey: { apiKeySecurityScheme: { description: 'The same API key', location: 'header', name: 'x-api-key' } },
      ...(token
        ? { openIdConnect: { openIdConnectSecurityScheme: { description: 'An access token', openIdConnectUrl } } }
        : {}),
    },
    securityRequirements: [
      { schemes: { bearer: { list: ANY_KEY } } },
      { schemes: { apiKey: { list: ANY_KEY } } },
      ...(token ? [{ schemes: { openIdConnect: { list: scopes.length > 0 ? scopes : ['openid'] } } }] : []),
    ],
  };
}
