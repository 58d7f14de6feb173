import type { AgentCard } from './agent-card.ts';

/** OAuth as a card describes it. */
export interface CardAuth {
  /** Metadata of the issuer whose access tokens are accepted; null where none are. */
  readonly openIdConnectUrl: string | null;
  /** Scopes that a token may be asked for with. */
  readonly scopes: readonly string[];
}

/**
 * Keys have no scopes. An empty list would be left out by some verifiers of a card and not by others, and with it
 * which scheme is needed at all.
 */
const ANY_KEY = ['call'];

/**
 * How clients sign in here: with an API key in either of two headers, or with an access token where an issuer is known.
 */
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
