import { createHash, randomBytes } from 'node:crypto';
import type { Tokens } from './client-memory.ts';
import { A_BUDGET, type Person } from './person.ts';

/** A client whose every request a test can change. For attacks and errors: real clients are in the other tests. */
export interface RawClient {
  readonly id: string;
  readonly verifier: string;
  /** The address of the authorization request, with changed parameters. undefined leaves one out. */
  authorizeUrl(changes?: Readonly<Record<string, string | undefined>>): string;
  /** A request to the token endpoint. */
  token(
    form: Readonly<Record<string, string | undefined>>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<TokenAnswer>;
  /** Redeems the code of an answer. */
  redeem(answer: URL, changes?: Readonly<Record<string, string | undefined>>): Promise<TokenAnswer>;
  refresh(token: string, changes?: Readonly<Record<string, string | undefined>>): Promise<TokenAnswer>;
  /** A whole sign-in. */
  signIn(person: Person, options?: { readonly resource?: string; readonly limits?: object }): Promise<Tokens>;
}

export interface TokenAnswer {
  readonly status: number;
  readonly body: Tokens & { readonly error?: string; readonly error_description?: string };
}

export const RAW_CALLBACK = 'http://127.0.0.1:7878/callback';

export async function registerRaw(
  origin: string,
  {
    resource = `${origin}/mcp`,
    id,
    ...metadata
  }: { readonly resource?: string; readonly id?: string; readonly [member: string]: unknown } = {},
): Promise<RawClient> {
  const clientId = id ?? (await register(origin, metadata)).client_id;
  const verifier = randomBytes(32).toString('base64url');
  const token: RawClient['token'] = async (form, headers = {}) => {
    const response = await fetch(`${origin}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: formOf({ client_id: clientId, ...form }),
    });
    return { status: response.status, body: (await response.json()) as TokenAnswer['body'] };
  };
  const client: RawClient = {
    id: clientId,
    verifier,
    authorizeUrl: (changes = {}) =>
      `${origin}/oauth/authorize?${formOf({
        client_id: clientId,
        redirect_uri: RAW_CALLBACK,
        response_type: 'code',
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
        state: 'its-state',
        resource,
        ...changes,
      })}`,
    token,
    redeem: (answer, changes = {}) =>
      token({
        grant_type: 'authorization_code',
        code: answer.searchParams.get('code') ?? '',
        redirect_uri: RAW_CALLBACK,
        code_verifier: verifier,
        ...changes,
      }),
    refresh: (refreshToken, changes = {}) =>
      token({ grant_type: 'refresh_token', refresh_token: refreshToken, ...changes }),
    async signIn(person, options = {}) {
      const url = client.authorizeUrl(options.resource === undefined ? {} : { resource: options.resource });
      const answer = await person.allow(await person.open(url), options.limits ?? A_BUDGET);
      const { status, body } = await client.redeem(answer);
      if (status !== 200) throw new Error(`no token: ${JSON.stringify(body)}`);
      return body;
    },
  };
  return client;
}

export async function register(
  origin: string,
  metadata: object = {},
): Promise<{ readonly client_id: string; readonly client_secret?: string; readonly [member: string]: unknown }> {
  const response = await fetch(`${origin}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Raw', redirect_uris: [RAW_CALLBACK], ...metadata }),
  });
  const body = (await response.json()) as Record<string, unknown>;
  if (response.status !== 201) throw new Error(`not registered: ${JSON.stringify(body)}`);
  return body as { readonly client_id: string };
}

const formOf = (fields: Readonly<Record<string, string | undefined>>): string =>
  new URLSearchParams(
    Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined),
  ).toString();
