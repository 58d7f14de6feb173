import type { AdapterPayload, Configuration, ErrorOut, KoaContextWithOIDC, Provider } from 'oidc-provider';
import type { GuardedFetch } from '#network';
import { createSealedTexts } from '#security';
import { isObject } from '#wire';
import { DPOP_ALGORITHMS, type Identity, type KeyStore, OWN_SCOPE, type Resources, signingJwk } from '#auth';
import type { Config } from '#config';
import { type AdapterDeps, type ClientSecretKeys, createAdapter, refreshTextOf } from './adapter.ts';
import { CLIENT_AUTH_METHODS, createClientFetch, isRedirect } from './clients.ts';
import { describeError, describeInAddress } from './error-descriptions.ts';
import { ERROR_PAGE_HEADERS, errorPage, PAGE_HEADERS } from './error-page.ts';
import type { StateStore } from './state-store.ts';

export interface ProviderDeps {
  readonly issuer: string;
  readonly config: Config['authorization'];
  readonly identity: Pick<Identity, 'secret' | 'accepted'>;
  readonly clientSecrets: ClientSecretKeys;
  readonly resources: Pick<Resources, 'isAudience'>;
  readonly state: StateStore;
  readonly keys: Pick<KeyStore, 'find' | 'delete'>;
  /** Stores a sign-in that begins. False if too many are open, see StateStore.begin. */
  readonly begin: (row: Parameters<StateStore['begin']>[0]) => Promise<boolean>;
  readonly fetch: GuardedFetch;
  /** Counts one token of a grant. Rejects with GatewayError `rate_limit_exceeded`. */
  readonly countToken: (account: string, key: string) => Promise<void>;
  readonly onError: (error: unknown) => void;
  readonly now: () => number;
}

/** Seconds. */
const MINUTE = 60;
const DAY = 24 * 60 * MINUTE;
const HOUR_MS = 60 * MINUTE * 1_000;
const CODE_TTL = MINUTE;
const SIGN_IN_TTL = 60 * MINUTE;
const ACCESS_TTL = 60 * MINUTE;
/** A program that is not used for so long has to sign in again. */
const REFRESH_TTL = 60 * DAY;
/** The key that a grant is ends earlier. */
export const GRANT_DAYS_MAX = 366;

/** Loads the library, at the first request that needs it, and gives it the rules of this gateway. */
export async function openProvider(deps: ProviderDeps): Promise<Provider> {
  const { issuer, identity, onError } = deps;
  const library = await loadLibrary();
  const refreshTexts = createSealedTexts(identity.accepted('refresh tokens'));
  const provider = new library.Provider(issuer, {
    ...endpoints(issuer, identity),
    ...rules({ ...deps, refreshTexts }, library),
  });
  // A token that was forgotten can still say which grant it is of. The types leave the method out.
  const ofRefresh = provider.RefreshToken.prototype as {
    generateTokenId?: (this: { readonly grantId?: string }) => string;
  };
  const generateTokenId = function (this: { readonly grantId?: string }) {
    return refreshTextOf(refreshTexts, this.grantId ?? '', deps.now() + REFRESH_TTL * 1_000);
  };
  ofRefresh.generateTokenId = generateTokenId;
  // The library takes every port of loopback, also that of the gateway.
  const ofClient = provider.Client.prototype as { redirectUriAllowed(uri: string): boolean };
  const { redirectUriAllowed } = ofClient;
  const isAllowed = function (this: typeof ofClient, uri: string) {
    return isRedirect(uri, issuer) && redirectUriAllowed.call(this, uri);
  };
  ofClient.redirectUriAllowed = isAllowed;
  // Addresses of answers are those of the issuer, see requestFor.
  provider.proxy = true;
  provider.on('server_error', (_context, error) => onError(error));
  provider.use(async (context, next) => {
    context.set(PAGE_HEADERS);
    await next();
    describe(context as KoaContextWithOIDC, issuer);
  });
  return provider;
}

/**
 * The library writes to the console that it does not support a Node without the name of a long-term release. This
 * project runs its tests on the Node that it pins.
 */
async function loadLibrary(): Promise<typeof import('oidc-provider')> {
  const { warn } = console;
  const ignore = () => {};
  console.warn = ignore;
  try {
    return await import('oidc-provider');
  } finally {
    console.warn = warn;
  }
}

function endpoints(issuer: string, identity: ProviderDeps['identity']): Configuration {
  const secure = issuer.startsWith('https:');
  // Cookies ignore ports, so several gateways on one machine need names of their own.
  const { port } = new URL(issuer);
  const nameOf = (what: string) => `${secure ? '__Secure-' : ''}tollgate-${what}${port === '' ? '' : `-${port}`}`;
  const cookie = { httpOnly: true, sameSite: 'lax', secure, signed: true } as const;
  return {
    routes: {
      authorization: '/oauth/authorize',
      token: '/oauth/token',
      revocation: '/oauth/revoke',
      jwks: '/oauth/jwks',
      end_session: '/oauth/end',
    },
    cookies: {
      names: { session: nameOf('oauth'), interaction: nameOf('asked'), resume: nameOf('resume') },
      keys: identity.accepted('authorization cookies').map((key) => key.toString('base64url')),
      // Of sessions, which are not kept. The library sets it all the same.
      long: { ...cookie, path: '/oauth' },
      short: cookie,
    },
    // Nothing is signed with it, because tokens are opaque and nobody gets an identity token. The library needs one.
    jwks: { keys: [signingJwk(identity.secret('authorization server'))] },
  };
}

function rules(
  deps: ProviderDeps & Pick<AdapterDeps, 'refreshTexts'>,
  library: typeof import('oidc-provider'),
): Configuration {
  const { config, resources, fetch, countToken } = deps;
  const { Check, Prompt } = library.interactionPolicy;
  const isUnanswered = ({ oidc }: KoaContextWithOIDC) => oidc.result?.consent === undefined;
  const consent = new Check('unanswered', 'Nobody has agreed to this', 'consent_required', isUnanswered);
  const fetching = new WeakSet<object>();
  const usedBefore = () => new library.errors.InvalidGrant('it was used before');
  const badAssertion = (why: string) => new library.errors.InvalidClientAuth(why);
  const isTarget = (resource: string) => resources.isAudience(resource);
  // The library looks at it only after it has used the code or token up, and then the right repeat would end the grant.
  const checkResource = ({ resource: granted }: AdapterPayload) => {
    const target = library.Provider.ctx?.oidc.params?.['resource'] || granted;
    const resource = Array.isArray(target) ? deps.issuer : target;
    if (resource !== undefined && !([granted].flat().includes(String(resource)) && isTarget(String(resource))))
      throw new library.errors.InvalidTarget();
  };
  // The first part of a proof has its key and nothing that changes. The library has checked the proof.
  const proofKey = () => library.Provider.ctx?.get('dpop').split('.', 1)[0] ?? '';
  const tooMany = () =>
    new library.errors.TemporarilyUnavailable(
      'too many sign-ins from your network are open and not finished, try again in some minutes',
    );
  return {
    adapter: (kind: string) => createAdapter(kind, { ...deps, checkResource, proofKey, usedBefore, tooMany }),
    clientAuthMethods: [...CLIENT_AUTH_METHODS],
    clientDefaults: { id_token_signed_response_alg: 'ES256', token_endpoint_auth_method: 'none' },
    enabledJWA: { dPoPSigningAlgValues: [...DPOP_ALGORITHMS], idTokenSigningAlgValues: ['ES256'] },
    scopes: [],
    claims: {},
    responseTypes: ['code'],
    pkce: { required: () => true },
    findAccount: async (_context, accountId, source) => {
      // Every token of a grant counts for its rate, so that no program fills the database.
      if (source?.grantId !== undefined) await countToken(accountId, source.grantId);
      return { accountId, claims: async () => ({ sub: accountId }) };
    },
    interactions: {
      url: (_context, { uid }) => `/authorize/${uid}`,
      policy: [new Prompt({ name: 'consent', requestable: true }, consent)],
    },
    loadExistingGrant: async ({ oidc }) => {
      const key = oidc.result?.consent?.grantId;
      return key === undefined ? undefined : oidc.provider.Grant.find(key);
    },
    issueRefreshToken: async (_context, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    // A grant whose code or token was stolen ends as a whole, and so does one that its program gives up.
    revokeGrantPolicy: () => true,
    expiresWithSession: () => false,
    clientBasedCORS: () => true,
    assertJwtClientAuthClaimsAndHeader: async (_context, { aud, exp }) => {
      // Another server that it names could use it here.
      if (Array.isArray(aud) && aud.length > 1) throw badAssertion('aud must name this server alone');
      // Its id is remembered for as long.
      if (Number(exp) * 1_000 > deps.now() + HOUR_MS) throw badAssertion('exp must be within an hour');
    },
    fetch: createClientFetch(fetch, deps.issuer),
    renderError,
    ttl: {
      AccessToken: ACCESS_TTL,
      AuthorizationCode: CODE_TTL,
      Grant: GRANT_DAYS_MAX * DAY,
      Interaction: SIGN_IN_TTL,
      RefreshToken: REFRESH_TTL,
      Session: SIGN_IN_TTL,
    },
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      revocation: { enabled: true, allowedPolicy: (_context, client, token) => token.clientId === client.clientId },
      dPoP: { enabled: true },
      // `ack` names the draft that this version of the library implements.
      clientIdMetadataDocument: {
        enabled: config.clientDocuments,
        ack: 'draft-02',
        // The library asks again when it writes the error of a document that is not right. It has no context for the
        // page, at a gateway that has not seen the document yet.
        allowFetch: (context: object | undefined) => {
          if (context === undefined) return true;
          const isFirst = !fetching.has(context);
          fetching.add(context);
          return isFirst;
        },
      },
      resourceIndicators: {
        enabled: true,
        // Clients before RFC 8707 name none. The person sees that it is for the whole gateway.
        defaultResource: () => deps.issuer,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, resource) => {
          if (!isTarget(resource)) throw new library.errors.InvalidTarget();
          return { scope: OWN_SCOPE, audience: resource, accessTokenFormat: 'opaque' };
        },
      },
    },
  };
}

function describe(context: KoaContextWithOIDC, issuer: string): void {
  const { body, response, res } = context;
  if (isObject(body) && typeof body['error'] === 'string') {
    const { error, error_description: description, ...others } = body as { error: string; error_description?: string };
    const grantType = String(context.oidc?.params?.['grant_type']);
    context.body = { error, error_description: describeError({ error, description, grantType, issuer }), ...others };
  }
  if (res.hasHeader('location')) response.set('location', describeInAddress(response.get('location'), issuer));
}

/** An error that no client can be told. Programs get the form of RFC 6749, whatever they accept. */
function renderError(context: KoaContextWithOIDC, error: ErrorOut): void {
  if (context.method === 'POST') {
    context.body = error;
    return;
  }
  const { error: code, error_description: description } = error;
  context.set(ERROR_PAGE_HEADERS);
  context.body = errorPage(code, describeError({ error: code, description, issuer: context.oidc.issuer }));
}
