import { AsyncLocalStorage } from 'node:async_hooks';
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Provider } from 'oidc-provider';
import { GatewayError } from '#errors';
import { OWN_SCOPE, type OwnToken } from '#auth';
import { type ClientIdentity, type ClientMetadata, identityOf } from './clients.ts';
import { requestFor } from './library-request.ts';
import { openProvider, type ProviderDeps } from './open-provider.ts';
import type { StateStore } from './state-store.ts';

/** The wish of a program, as the person sees it who agrees or not. */
export interface SignInRequest {
  readonly client: ClientIdentity;
  /** Resources of the gateway (RFC 8707) that it wants to call. */
  readonly resources: readonly string[];
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** The API key that is the limits of a grant. */
interface GrantKey {
  readonly account: string;
  readonly hash: string;
  readonly expiresAt: number;
}

/** A request of a browser, with its answer. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

interface AnswerDetails {
  readonly body: Uint8Array | null;
  readonly url?: string | undefined;
  readonly address: string;
}

/** The gateway's own authorization server (OAuth 2.1). The library is loaded at the first request. */
export interface AuthorizationServer {
  /** null before the gateway knows its own address. */
  readonly issuer: () => string | null;
  /** Loads the library. Rejects with GatewayError `not_found` before the gateway knows its own address. */
  ready(): Promise<void>;
  /** Lets the library answer. Resolves with the status. */
  answer(exchange: Exchange, details: AnswerDetails): Promise<number>;
  /**
   * The sign-in that this browser began. Rejects with GatewayError `not_found` without one, or after an answer.
   */
  requested(exchange: Exchange): Promise<SignInRequest>;
  /**
   * Whether a browser goes on with a sign-in that it has answered itself. Its cookies do not show that: another host of
   * the domain can plant those of its own sign-in in the person's browser, and would get the answer.
   */
  hasAnswered(id: string, mark: string): boolean;
  /** Says yes. Resolves with the address to go on at. Rejects like `requested`. */
  allow(exchange: Exchange, key: GrantKey): Promise<string>;
  /** Says no. Resolves with the address to go on at. Rejects like `requested`. */
  refuse(exchange: Exchange): Promise<string>;
  /**
   * Throws the error of the library, with `error` and `error_description` of RFC 7591, if it cannot take a client with
   * this description.
   */
  judge(metadata: ClientMetadata): Promise<void>;
}

type AuthorizationServerOptions = Omit<ProviderDeps, 'issuer' | 'begin'> & Pick<AuthorizationServer, 'issuer'>;

export function createAuthorizationServer(options: AuthorizationServerOptions): AuthorizationServer {
  const { issuer, state, identity } = options;
  let opening: Promise<Opened> | null = null;
  // The library does not tell its adapter of which request it stores something.
  const answers = new AsyncLocalStorage<{ readonly address: string; readonly response: ServerResponse }>();
  const begin: ProviderDeps['begin'] = async (row) => {
    const { address = '', response } = answers.getStore() ?? {};
    if (await state.begin(row, address)) return true;
    response?.setHeader('retry-after', RETRY_AFTER_S);
    return false;
  };

  const open = (): Promise<Opened> => {
    const own = issuer();
    if (own === null)
      throw new GatewayError('not_found', 'No program can sign in here yet: the operator has to set server.public_url');
    opening ??= openProvider({ ...options, begin, issuer: own }).then(
      (provider) => ({ provider, issuer: own, handle: provider.callback() }),
      (error: unknown) => {
        opening = null;
        throw error;
      },
    );
    return opening;
  };

  const markOf = (id: string): Buffer =>
    createHmac('sha256', identity.secret('answers to programs')).update(id).digest();

  /** The sign-in of a browser that waits for an answer. */
  const waiting = async ({ request, response }: Exchange) => {
    const { provider, issuer: own } = await open();
    const ownRequest = requestFor(request, own, null);
    let interaction;
    try {
      interaction = await provider.interactionDetails(ownRequest, response);
    } catch (error) {
      throw over(error);
    }
    if (interaction.result !== undefined) throw over();
    const client = await provider.Client.find(String(interaction.params['client_id']));
    if (client === undefined) throw over();
    const answer = async (result: Parameters<Provider['interactionResult']>[2]) => {
      const next = await provider.interactionResult(ownRequest, response, result, { mergeWithLastSubmission: false });
      return `${next}?mark=${markOf(interaction.uid).toString('base64url')}`;
    };
    const resources = [interaction.params['resource']].flat().map(String);
    return { provider, interaction, client, resources, answer };
  };

  return {
    issuer,

    async ready() {
      await open();
    },

    async answer({ request, response }, { body, url, address }) {
      const { handle, issuer: own } = await open();
      await answers.run({ address, response }, () => handle(requestFor(request, own, body, url), response));
      return response.statusCode;
    },

    hasAnswered(id, mark) {
      const [own, other] = [markOf(id), Buffer.from(mark, 'base64url')];
      return own.byteLength === other.byteLength && timingSafeEqual(own, other);
    },

    async requested(exchange) {
      const { interaction, client, resources } = await waiting(exchange);
      return {
        client: identityOf(client, String(interaction.params['redirect_uri'])),
        resources,
        expiresAt: interaction.exp * 1_000,
      };
    },

    async allow(exchange, { account, hash, expiresAt }) {
      const { provider, client, resources, answer } = await waiting(exchange);
      const grant = new provider.Grant({ accountId: account, clientId: client.clientId });
      grant.jti = hash;
      for (const resource of resources) grant.addResourceScope(resource, OWN_SCOPE);
      await grant.save();
      await state.keepClient(client.clientId, expiresAt);
      return answer({ login: { accountId: account, remember: false }, consent: { grantId: hash } });
    },

    async refuse(exchange) {
      const { answer } = await waiting(exchange);
      return answer({ error: 'access_denied', error_description: 'The person said no' });
    },

    async judge(metadata) {
      const { provider } = await open();
      // The types leave the constructor out, which checks what a client says of itself.
      const Client = provider.Client as unknown as new (metadata: ClientMetadata) => object;
      void new Client({ client_id: 'judged', ...metadata });
    },
  };
}

/** Sign-ins that nobody finishes end within an hour. */
const RETRY_AFTER_S = 10 * 60;

interface Opened {
  readonly provider: Provider;
  readonly issuer: string;
  readonly handle: ReturnType<Provider['callback']>;
}

/** The error for a browser without a sign-in that waits, or whose sign-in it is not. */
export function over(cause?: unknown): GatewayError {
  return new GatewayError(
    'not_found',
    'This sign-in is over, or it was begun in another browser: go back to the program, and begin again',
    { cause },
  );
}

/** Looks up access tokens of the authorization server, without its library. */
export function createTokenLookup(state: Pick<StateStore, 'find'>): (text: string) => Promise<OwnToken | null> {
  return async (text) => {
    const row = await state.find('AccessToken', text);
    if (row?.grantKey == null) return null;
    const { aud, jkt } = row.payload;
    return {
      key: row.grantKey,
      resource: String(aud),
      jkt: typeof jkt === 'string' ? jkt : null,
      expiresAt: row.expiresAt,
    };
  };
}
