/** What an MCP client keeps of its sign-ins, in the form that its SDK asks for. */
export interface ClientMemory {
  /** The provider that both SDKs take: unmodified, they do the rest. */
  readonly provider: {
    readonly redirectUrl: string;
    readonly clientMetadata: {
      readonly client_name: string;
      readonly redirect_uris: string[];
      readonly grant_types: string[];
      readonly response_types: string[];
      readonly token_endpoint_auth_method: string;
    };
    readonly clientMetadataUrl?: string;
    state(): string;
    clientInformation(): never;
    saveClientInformation(information: unknown): void;
    tokens(): never;
    saveTokens(tokens: unknown): void;
    redirectToAuthorization(url: URL): void;
    saveCodeVerifier(verifier: string): void;
    codeVerifier(): string;
    saveDiscoveryState(state: unknown): void;
    discoveryState(): never;
    invalidateCredentials(scope: string): void;
  };
  readonly tokens: () => Tokens;
  /** The address that the client would open in a browser. */
  readonly opened: () => URL;
  readonly clientId: () => string;
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token?: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly scope?: string;
}

export const CALLBACK = 'http://127.0.0.1:7777/callback';

export function createClientMemory({
  name = 'Test client',
  method = 'none',
  document,
  callback = CALLBACK,
}: {
  readonly name?: string;
  readonly method?: string;
  readonly document?: string;
  readonly callback?: string;
} = {}): ClientMemory {
  const kept: Record<string, unknown> = {};
  return {
    provider: {
      redirectUrl: callback,
      clientMetadata: {
        client_name: name,
        redirect_uris: [callback],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: method,
      },
      ...(document === undefined ? {} : { clientMetadataUrl: document }),
      state: () => 'a-state',
      clientInformation: () => kept['client'] as never,
      saveClientInformation: (information) => void (kept['client'] = information),
      tokens: () => kept['tokens'] as never,
      saveTokens: (tokens) => void (kept['tokens'] = tokens),
      redirectToAuthorization: (url) => void (kept['opened'] = url),
      saveCodeVerifier: (verifier) => void (kept['verifier'] = verifier),
      codeVerifier: () => kept['verifier'] as string,
      saveDiscoveryState: (state) => void (kept['discovery'] = state),
      discoveryState: () => kept['discovery'] as never,
      invalidateCredentials(scope) {
        if (scope === 'all' || scope === 'tokens') delete kept['tokens'];
        if (scope === 'all' || scope === 'client') delete kept['client'];
        if (scope === 'all' || scope === 'discovery') delete kept['discovery'];
      },
    },
    tokens: () => kept['tokens'] as Tokens,
    opened: () => kept['opened'] as URL,
    clientId: () => (kept['client'] as { readonly client_id: string }).client_id,
  };
}
