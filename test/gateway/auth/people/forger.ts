import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { CLIENT } from './company.ts';
import { openVisitor, START, type Visitor } from './visitor.ts';

type PrivateKey = Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];

/** A provider that answers with whatever a test wants: identity tokens, userinfo and logout tokens that are wrong. */
export interface Forger {
  readonly issuer: string;
  /** The provider's key, and one that it does not have. */
  readonly good: PrivateKey;
  readonly evil: PrivateKey;
  /** The public key of the provider, as it publishes it. */
  readonly jwk: object;
  /** What the next identity tokens have besides or instead of the usual claims of `ann` in the group `staff`. */
  changes: JWTPayload;
  /** Claims of the userinfo; null for a provider without. Default: null. */
  userinfo: object | null;
  signer: PrivateKey;
  /** Answers a refresh; null: with an identity token like that of a sign-in. */
  refresh: (() => object) | null;
  /** The verifier of PKCE in the last request. */
  verifier: string | null;
  sign(claims: JWTPayload, key?: PrivateKey, type?: string): Promise<string>;
  /** A sign-in at a gateway by a new browser. */
  signIn(gateway: string): Promise<{ readonly visitor: Visitor; readonly asked: URL; readonly outcome: string | null }>;
  /** Claims of a right logout token, each time with another id. */
  logoutClaims(more?: object): JWTPayload;
  stop(): Promise<void>;
}

const EVENT = { 'http://schemas.openid.net/event/backchannel-logout': {} };
const seconds = () => Math.floor(Date.now() / 1_000);

export async function startForger(): Promise<Forger> {
  const [good, evil] = await Promise.all([generateKeyPair('RS256'), generateKeyPair('RS256')]);
  const jwk = { ...(await exportJWK(good.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' };
  let nonce = '';
  let count = 0;
  const provider = createServer((request, response) => {
    const json = (body: unknown, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.url!.startsWith('/.well-known/'))
      return json({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        userinfo_endpoint: `${issuer}/userinfo`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ['code'],
        id_token_signing_alg_values_supported: ['RS256'],
        authorization_response_iss_parameter_supported: true,
      });
    if (request.url === '/jwks') return json({ keys: [jwk] });
    if (request.url === '/userinfo') return json(forger.userinfo ?? {}, forger.userinfo === null ? 404 : 200);
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const form = new URLSearchParams(text);
      const isRefresh = form.get('grant_type') === 'refresh_token';
      if (isRefresh && forger.refresh !== null) return json(forger.refresh(), 400);
      if (!isRefresh) forger.verifier = form.get('code_verifier');
      const at = seconds();
      const claims = {
        iss: issuer,
        sub: 'ann',
        aud: CLIENT.id,
        iat: at,
        exp: at + 300,
        ...(isRefresh ? {} : { nonce }),
        groups: ['staff'],
      };
      void forger
        .sign({ ...claims, ...forger.changes }, forger.signer)
        .then((token) =>
          json({ access_token: 'a', token_type: 'Bearer', id_token: token, refresh_token: `r-${(count += 1)}` }),
        );
    });
    return undefined;
  });
  provider.listen(0, '127.0.0.1');
  await once(provider, 'listening');
  const issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const forger: Forger = {
    issuer,
    good: good.privateKey,
    evil: evil.privateKey,
    jwk,
    changes: {},
    userinfo: null,
    signer: good.privateKey,
    refresh: null,
    verifier: null,
    sign: (claims, key = good.privateKey, type = 'JWT') =>
      new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'one', typ: type }).sign(key),
    async signIn(gateway) {
      const visitor = openVisitor(gateway);
      const asked = (await visitor.step(gateway + START))!;
      nonce = asked.searchParams.get('nonce')!;
      const answer = `${gateway}/api/v1/auth/people/callback?code=c&iss=${encodeURIComponent(issuer)}`;
      const page = await visitor.step(`${answer}&state=${asked.searchParams.get('state')}`);
      return { visitor, asked, outcome: page!.searchParams.get('people') };
    },
    logoutClaims: (more = {}) => ({
      iss: issuer,
      aud: CLIENT.id,
      sub: 'ann',
      iat: seconds(),
      exp: seconds() + 120,
      jti: `jti-${(count += 1)}`,
      events: EVENT,
      ...more,
    }),
    async stop() {
      provider.closeAllConnections();
      provider.close();
      await once(provider, 'close');
    },
  };
  return forger;
}
