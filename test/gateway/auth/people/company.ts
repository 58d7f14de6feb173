import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Provider } from 'oidc-provider';
import { findFreePort } from '../../../support/free-port.ts';

/** A company's OpenID Connect provider: the library `oidc-provider` with people who sign in without a password. */
export interface Company {
  readonly issuer: string;
  /** Who signs in next, where the browser has no cookie `person` that says so. */
  person: string;
  /** Groups of each person. A person who is not here does not exist. */
  readonly groups: Map<string, readonly string[]>;
  /** Names of the people at the provider, and what else their claims have. */
  readonly claims: Map<string, object>;
  /** Lets it answer 503 to everything. */
  away: boolean;
  /** Requests of the gateway for tokens. */
  readonly tokenRequests: () => number;
  /** Signs a person out at the provider, which tells the gateway so. Rejects if the gateway does not accept it. */
  signOut(person: string): Promise<void>;
  stop(): Promise<void>;
}

export const CLIENT = { id: 'tollgate', secret: 'secret-of-the-gateway-at-the-company' };

/** The block of a gateway's configuration for this company. */
export const peopleToml = (issuer: string, rules: string, more = '') => `
[people]
issuer = "${issuer}"
client_id = "${CLIENT.id}"
client_secret = "${CLIENT.secret}"
name = "Acme"
${more}
${rules}
`;

export async function startCompany(gateway: string): Promise<Company> {
  const { Provider: Library } = await import('oidc-provider');
  const port = await findFreePort();
  const issuer = `http://127.0.0.1:${port}`;
  const company = {
    person: 'ann',
    away: false,
    groups: new Map<string, readonly string[]>(),
    claims: new Map<string, object>(),
  };
  let tokens = 0;
  const provider: Provider = new Library(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [`${gateway}/api/v1/auth/people/callback`],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        backchannel_logout_uri: `${gateway}/api/v1/auth/people/logout`,
        backchannel_logout_session_required: false,
      },
    ],
    claims: { openid: ['sub', 'sid'], profile: ['name', 'groups', 'hasgroups'], email: ['email'] },
    conformIdTokenClaims: false,
    scopes: ['openid', 'offline_access', 'profile', 'email'],
    pkce: { required: () => true },
    cookies: { keys: ['a key of the tests'] },
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    findAccount: (_context, id) =>
      company.groups.has(id)
        ? {
            accountId: id,
            claims: async () => ({
              sub: id,
              name: `Person ${id}`,
              email: 'everybody@acme.example',
              groups: company.groups.get(id)!,
              ...company.claims.get(id),
            }),
          }
        : undefined,
    // Without the library's guard, which refuses this machine.
    fetch: (url, options) => fetch(url, { ...(options as object), dispatcher: undefined } as unknown as RequestInit),
  });
  provider.on('grant.success', () => (tokens += 1));
  const handle = provider.callback();
  const interact = async (request: IncomingMessage, response: ServerResponse) => {
    const { prompt, params } = await provider.interactionDetails(request, response);
    const accountId = /(?:^|; )person=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? company.person;
    const grant = new provider.Grant({ accountId, clientId: CLIENT.id });
    grant.addOIDCScope(String(params['scope']));
    const answer = prompt.name === 'login' ? { login: { accountId } } : { consent: { grantId: await grant.save() } };
    await provider.interactionFinished(request, response, answer, { mergeWithLastSubmission: true });
  };
  const server = createServer((request, response) => {
    if (company.away) return void response.writeHead(503).end('away');
    if (request.url!.startsWith('/interaction/')) return void interact(request, response);
    void handle(request, response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  if ((server.address() as AddressInfo).port !== port) throw new Error('another port');
  return Object.assign(company, {
    issuer,
    tokenRequests: () => tokens,
    async signOut(person: string) {
      const client = (await provider.Client.find(CLIENT.id)) as unknown as {
        backchannelLogout(subject: string, sid?: string): Promise<void>;
      };
      await client.backchannelLogout(person);
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}
