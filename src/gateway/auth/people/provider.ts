import type { JWTVerifyGetKey } from 'jose';
import type { Configuration, CustomFetchOptions } from 'openid-client';
import type { Config } from '#config';
import { printable, UNPRINTABLE } from '#security';
import { BOUNDS } from '#wire';
import { createIssuerKeys } from '../oauth/issuer-keys.ts';

/** The part of a sign-in under way that is remembered until the provider sends the person back. */
export interface Pending {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE. */
  readonly verifier: string;
}

/** The identity token, or the userinfo. */
export type ClaimsSource = 'token' | 'userinfo';

export interface PersonClaims {
  readonly subject: string;
  /** null: the provider says none. */
  readonly name: string | null;
  /** null: the provider says nothing about them. */
  readonly groups: readonly string[] | null;
  /** The answer in which they stand. null if none has them. */
  readonly groupsFrom: ClaimsSource | null;
  /** Answers that came and have no word of groups, nor of another server that has them. */
  readonly withoutGroups: readonly ClaimsSource[];
  readonly sid: string | null;
  /** null if the provider gave none. */
  readonly refreshToken: string | null;
}

export interface LogoutToken {
  readonly jti: string;
  readonly subject: string | null;
  readonly sid: string | null;
}

/** The company's OpenID Connect provider. `openid-client` is loaded at the first request that needs it. */
export interface PeopleProvider {
  /** Begins a sign-in. Rejects with ProviderAway. */
  begin(redirectUri: string): Promise<{ readonly url: URL; readonly pending: Pending }>;
  /**
   * The person of an answer. Rejects with ProviderAway, and with ProviderRefusal if the answer is not the one to this
   * sign-in or its identity token is not right.
   */
  finish(answer: URL, pending: Pending): Promise<PersonClaims>;
  /**
   * `onToken` stores a new token before anything else is asked. Rejects with ProviderAway, and with ProviderRefusal if
   * the provider does not know the person any more.
   */
  refresh(token: string, subject: string, onToken: (token: string) => Promise<void>): Promise<PersonClaims>;
  /** Checks a logout token (OpenID Connect Back-Channel Logout 1.0). Rejects with an Error that says what is wrong. */
  readLogout(token: string): Promise<LogoutToken>;
}

/** The provider cannot be asked now. */
export class ProviderAway extends Error {
  override readonly name = 'ProviderAway';
  /** It may have answered, and the answer was lost. */
  readonly isUnclear: boolean;
  constructor(message: string, { cause, isUnclear = false }: ErrorOptions & { readonly isUnclear?: boolean } = {}) {
    super(message, { cause });
    this.isUnclear = isUnclear;
  }
}
/** The provider says no, or what it says is not right. */
export class ProviderRefusal extends Error {
  override readonly name = 'ProviderRefusal';
}

interface ProviderOptions {
  readonly config: Config['people'] & { readonly issuer: string };
  readonly elapsed: () => number;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

const TIMEOUT_S = 5;
const USUAL_SCOPES = ['profile', 'email', 'offline_access'];
/** Clocks of the provider and of the gateway may differ by so much. */
const SKEW_S = 60;
const LOGOUT_AGE_S = 10 * 60;
const METADATA_MS = 60 * 60_000;
const NAME_MAX = 100;
const GROUPS_MAX = 5_000;
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

export function createPeopleProvider({ config, elapsed, now, onError }: ProviderOptions): PeopleProvider {
  const clientId = config.clientId!;
  let known: { readonly configuration: Promise<Configuration>; readonly at: number } | null = null;
  let keys: Promise<JWTVerifyGetKey> | null = null;

  const discover = async (): Promise<Configuration> => {
    const client = await import('openid-client');
    return client.discovery(
      new URL(config.issuer),
      clientId,
      { client_secret: config.clientSecret!, [client.clockTolerance]: SKEW_S },
      client.ClientSecretBasic(config.clientSecret!),
      {
        timeout: TIMEOUT_S,
        [client.customFetch]: boundedFetch,
        execute: [
          // The signature counts too, not only the connection that the token came over.
          client.enableNonRepudiationChecks,
          // Only an issuer on this machine may be http, see isIssuerUrl.
          // oxlint-disable-next-line typescript/no-deprecated -- it is marked so that it stands out
          ...(config.issuer.startsWith('http:') ? [client.allowInsecureRequests] : []),
        ],
      },
    );
  };
  /** Metadata is read again after an hour. Until it comes, the old one counts. */
  const metadata = async (): Promise<Configuration> => {
    const at = elapsed();
    if (known === null || at - known.at >= METADATA_MS) {
      const fresh = { configuration: discover(), at };
      known = fresh;
      fresh.configuration.catch(() => {
        if (known === fresh) known = null;
      });
    }
    try {
      return await known.configuration;
    } catch (error) {
      throw new ProviderAway('The metadata of the provider could not be read', { cause: error });
    }
  };

  /** The claims of an identity token, and of the userinfo if the token has no groups. */
  const describe = async (
    configuration: Configuration,
    tokens: {
      readonly access_token: string;
      readonly refresh_token?: string | undefined;
      claims(): object | undefined;
    },
    subject: string | null,
  ): Promise<PersonClaims> => {
    const client = await import('openid-client');
    const token = tokens.claims() as Claims | undefined;
    let claims = token ?? {};
    const who = subject ?? subjectOf(claims['sub']);
    if (claims['sub'] !== undefined && claims['sub'] !== who)
      throw new ProviderRefusal('The provider answers about another person');
    let userinfo: Claims | undefined;
    if (claims[config.groupsClaim] === undefined && configuration.serverMetadata().userinfo_endpoint !== undefined)
      userinfo = await client.fetchUserInfo(configuration, tokens.access_token, who);
    claims = { ...claims, ...userinfo };
    // The library bounds only the age. A token of the future would be good for longer than its provider meant.
    for (const time of ['iat', 'auth_time'])
      if (Number(claims[time] ?? 0) * 1_000 > now() + SKEW_S * 1_000)
        throw new ProviderRefusal(`The ${time} of the identity token is in the future`);
    const text = (name: string) => (typeof claims[name] === 'string' ? printable(claims[name], NAME_MAX).trim() : '');
    return {
      subject: who,
      name: text('name') || text('preferred_username') || text('email') || null,
      ...groupsIn(config.groupsClaim, { token, userinfo }),
      sid: idOf(claims['sid']),
      refreshToken: tokens.refresh_token ?? null,
    };
  };

  return {
    async begin(redirectUri) {
      const configuration = await metadata();
      const client = await import('openid-client');
      const pending = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
      };
      const { scopes_supported: supported } = configuration.serverMetadata();
      // Google refuses a scope that it does not know.
      const usual = USUAL_SCOPES.filter((scope) => supported?.includes(scope) ?? true);
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: [...new Set(['openid', ...usual, ...config.scopes])].join(' '),
        state: pending.state,
        nonce: pending.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(pending.verifier),
        code_challenge_method: 'S256',
        // Google gives a refresh token for this alone.
        ...(new URL(config.issuer).host === 'accounts.google.com' ? { access_type: 'offline', prompt: 'consent' } : {}),
      });
      return { url, pending };
    },

    async finish(answer, { state, nonce, verifier }) {
      const configuration = await metadata();
      const client = await import('openid-client');
      try {
        const tokens = await client.authorizationCodeGrant(configuration, answer, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        return await describe(configuration, tokens, null);
      } catch (error) {
        throw refusalOrAway(error);
      }
    },

    async refresh(token, subject, onToken) {
      const configuration = await metadata();
      const client = await import('openid-client');
      try {
        const tokens = await client.refreshTokenGrant(configuration, token);
        // Kept before anything else is asked, because the old one may be used up.
        if (tokens.refresh_token !== undefined) await onToken(tokens.refresh_token);
        const claims = await describe(configuration, tokens, subject);
        return { ...claims, refreshToken: claims.refreshToken ?? token };
      } catch (error) {
        // Nothing else says that the person is gone, and what hangs on it is deleted then.
        if ((error as { readonly error?: unknown }).error === 'invalid_grant')
          throw new ProviderRefusal('The provider does not know the person any more', { cause: error });
        const isUnclear = !hasRefused(error);
        throw new ProviderAway('The provider cannot be asked about a person', { cause: error, isUnclear });
      }
    },

    async readLogout(token) {
      const { jwtVerify } = await import('jose');
      keys ??= createIssuerKeys({ issuer: config.issuer, jwksUrl: null, elapsed, onError });
      const { payload } = await jwtVerify(token, await keys, {
        issuer: config.issuer,
        audience: clientId,
        algorithms: ALGORITHMS,
        clockTolerance: SKEW_S,
        maxTokenAge: LOGOUT_AGE_S,
        requiredClaims: ['jti', 'iat', 'events'],
        currentDate: new Date(now()),
      });
      const { jti, sub, sid, events, nonce } = payload as Readonly<Record<string, unknown>>;
      const event = isPlain(events) ? events[LOGOUT_EVENT] : undefined;
      if (!isPlain(event)) throw new Error(`events lacks ${LOGOUT_EVENT}`);
      if (nonce !== undefined) throw new Error('nonce is there, so it is an identity token');
      const [id, subject, session] = [idOf(jti), idOf(sub), idOf(sid)];
      if (id === null) throw new Error('jti is no text');
      if (subject === null && session === null) throw new Error('sub and sid are missing');
      return { jti: id, subject, sid: session };
    },
  };
}

/** Whether the provider has given no token: it has answered so, or no connection came about. */
function hasRefused(error: unknown): boolean {
  const { status, cause } = error as { readonly status?: unknown; readonly cause?: unknown };
  const answered = typeof status === 'number' ? status : cause instanceof Response ? cause.status : null;
  if (answered !== null) return (answered >= 400 && answered < 500) || answered === 503;
  const { code } = (cause ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && NO_CONNECTION.has(code);
}

const NO_CONNECTION = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

const ID_MAX = 1_000;

/** An id of the provider: a text that databases and account names take, and that shows what it is. null for others. */
const idOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= ID_MAX && !UNPRINTABLE.test(value) ? value : null;

type Claims = Readonly<Record<string, unknown>>;

function groupsIn(
  claim: string,
  answers: Readonly<Record<ClaimsSource, Claims | undefined>>,
): Pick<PersonClaims, 'groups' | 'groupsFrom' | 'withoutGroups'> {
  const sources = (['token', 'userinfo'] as const).filter((source) => answers[source] !== undefined);
  const from = sources.find((source) => answers[source]![claim] !== undefined);
  if (from === undefined) {
    const withoutGroups = sources.filter((source) => !isElsewhere(claim, answers[source]!));
    return { groups: null, groupsFrom: null, withoutGroups };
  }
  const groups = groupsOf(answers[from]![claim]);
  return { groups, groupsFrom: groups === null ? null : from, withoutGroups: [] };
}

/** A person in too many groups for one token: OpenID Connect Core 5.6.2, and `hasgroups` of Entra ID. */
const isElsewhere = (claim: string, { _claim_names: names, hasgroups }: Claims): boolean =>
  (isPlain(names) && names[claim] !== undefined) || hasgroups === true || hasgroups === 'true';

/** Anything but a list of names says nothing. */
function groupsOf(listed: unknown): readonly string[] | null {
  const list = typeof listed === 'string' ? [listed] : listed;
  return Array.isArray(list) ? list.filter((group) => typeof group === 'string').slice(0, GROUPS_MAX) : null;
}

function subjectOf(sub: unknown): string {
  const subject = idOf(sub);
  if (subject === null) throw new ProviderRefusal('The provider names the person with something that is no id');
  return subject;
}

/** Reads at most so many bytes of an answer, whoever the provider is. */
async function boundedFetch(url: string, options: CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, options as RequestInit);
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += piece.length;
    if (size > BOUNDS.issuer.bytesMax)
      throw new Error(`The provider answers more than ${BOUNDS.issuer.bytesMax} bytes`);
    pieces.push(piece);
  }
  const { status, headers } = response;
  return new Response(pieces.length === 0 ? null : Buffer.concat(pieces), { status, headers });
}

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Errors of OAuth that say no about the person. Any other one is a fault of the provider or of its setup. */
const SAYS_NO = new Set(['invalid_grant', 'access_denied', 'login_required', 'consent_required']);

function refusalOrAway(error: unknown): Error {
  if (error instanceof ProviderRefusal || error instanceof ProviderAway) return error;
  const { error: code, code: kind } = error as { readonly error?: unknown; readonly code?: unknown };
  if (typeof code === 'string') {
    const text = `The provider answers ${code}`;
    return SAYS_NO.has(code) ? new ProviderRefusal(text, { cause: error }) : new ProviderAway(text, { cause: error });
  }
  // A response that is not right in itself: another state, nonce, issuer or audience, a wrong signature, an old token.
  if (typeof kind === 'string' && WRONG.has(kind))
    return new ProviderRefusal(`The answer of the provider is not right (${kind})`, { cause: error });
  return new ProviderAway('The provider cannot be asked', { cause: error });
}

const WRONG = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_PARSE_ERROR',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
]);
