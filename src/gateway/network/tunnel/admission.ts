import type { IncomingMessage } from 'node:http';
import { createHash } from 'node:crypto';
import { GatewayError } from '#errors';
import { ownTurn } from '#wire';
import { ACCOUNT_HEADER, nobodyActs, type Caller, providerIdOf } from '#accounts';
import type { AdmittedProviders, Service } from '#config';
import { type Identity, letOldTextCount, refuseRepeatedCredentials, restrictedKey, verifyWalletSignature } from '#auth';
import { isWallet } from '#accounts/names';
import { TUNNEL_PROTOCOL, registrationText, type ProxyMessage } from '../tunnel-wire.ts';
import { readRegistration, RegistrationError } from '../registry/document.ts';

export interface AdmittedProvider {
  readonly provider: string;
  readonly account: string;
  /** CAIP-10 id of the account, with the network that its wallet signed for. */
  readonly caip10: string;
  /**
   * True if it authenticated with an API key. Then registrations are not signed, and the tunnel ends when the key
   * becomes invalid.
   */
  readonly byKey: boolean;
}

export interface AdmitOptions {
  /** Throws GatewayError. */
  readonly authenticate: (headers: IncomingMessage['headers'], address: string) => Caller | Promise<Caller>;
  readonly identity: Pick<Identity, 'providerId'>;
  readonly listed: ProviderList;
}

interface ProviderList {
  has(names: readonly (string | undefined)[]): boolean;
  isEmpty(): boolean;
  /** Whoever has a wallet may connect. */
  isAnyone(): boolean;
  replace(providers: AdmittedProviders): void;
}

export function createProviderList(providers: AdmittedProviders): ProviderList {
  let anyone = false;
  let allowed: ReadonlySet<string> = new Set();
  const list: ProviderList = {
    has: (names) => anyone || names.some((name) => name !== undefined && allowed.has(inOneCase(name))),
    isAnyone: () => anyone,
    isEmpty: () => !anyone && allowed.size === 0,
    replace(next) {
      anyone = next === 'anyone';
      allowed = new Set(Array.isArray(next) ? (next as readonly string[]).map(inOneCase) : []);
    },
  };
  list.replace(providers);
  return list;
}

const refused = (message: string) => new GatewayError('permission_denied', message);

/**
 * A function that authenticates a dial and decides whether it is admitted. `address` is the proxy's. Rejects with
 * GatewayError or with the errors of `authenticate`.
 */
export function createAdmission({
  authenticate,
  identity,
  listed,
}: AdmitOptions): (request: IncomingMessage, address: string) => Promise<AdmittedProvider> {
  return async (request, address) => {
    const offered = request.headers['sec-websocket-protocol']?.split(',').map((name) => name.trim());
    if (!offered?.includes(TUNNEL_PROTOCOL))
      throw new GatewayError(
        'invalid_request',
        `Ask for the WebSocket subprotocol ${TUNNEL_PROTOCOL}: it is the only one for providers at this gateway`,
      );
    refuseRepeatedCredentials(request.rawHeaders);
    if (request.headers[ACCOUNT_HEADER] !== undefined) throw nobodyActs();
    const { account, key, wallet } = await authenticate(request.headers, address);
    const provider = providerIdOf(account, identity);
    if (key === null && wallet === null)
      throw refused('An access token cannot provide: use a wallet, or an API key of the account');
    // The cached value is enough, because each tunnel repeats this check twice a second.
    if (key?.restricted) throw restrictedKey('provide');
    // Otherwise a stolen key of a wallet's account could replace the wallet's own proxy.
    if (key && isWallet(account))
      throw refused("The account of this key is a wallet's: provide as the wallet itself, with [router.siwx]");
    if (wallet && !account.endsWith(`:${provider}`))
      throw refused(
        'A contract wallet cannot sign registrations: provide with an ordinary wallet, or with an API key of the account',
      );
    if (!listed.has([provider, account, wallet?.caip10]))
      throw refused(
        !listed.isEmpty()
          ? `Provider ${provider} is not on this gateway's list of providers. Ask its operator to add you to tunnel.providers`
          : `This gateway lets no provider in. Its operator can admit you, ${provider}, in tunnel.providers`,
      );
    // A tunnel that is open goes on until the text of its key ends. A text that was replaced opens none.
    letOldTextCount(request.headers);
    return { provider, account, caip10: wallet?.caip10 ?? account, byKey: wallet === null };
  };
}

/** EVM addresses are case-insensitive, base58 is not. */
const inOneCase = (name: string) => (name.includes('0x') ? name.toLowerCase() : name);

export interface RegistrationRules {
  /** Domain names of this router. */
  readonly domains: readonly string[];
  readonly servicesMax: number;
}

/**
 * Checks a registration and returns its services. A provider with a wallet must have signed it for this router and for
 * the connection with this challenge. Rejects with RegistrationError.
 */
export async function checkRegistration(
  { document, router, signature }: Extract<ProxyMessage, { type: 'register' }>,
  { provider, account, byKey }: AdmittedProvider,
  challenge: string,
  { domains, servicesMax }: RegistrationRules,
): Promise<readonly Service[]> {
  if (!byKey) {
    if (!domains.includes(router))
      throw wrong(
        'router',
        `is ${JSON.stringify(router.slice(0, 100))}`,
        `a domain of this router: ${domains.join(', ')}`,
      );
    if (signature === null)
      throw wrong('signature', 'is missing', 'the signature of the registration by the wallet that signed in');
    await ownTurn();
    const digest = createHash('sha256').update(document).digest('hex');
    const text = registrationText({ router, provider, challenge, digest });
    if (!(await verifyWalletSignature({ account, text, signature })))
      throw wrong(
        'signature',
        `is not that of ${provider} for this document on this connection`,
        'a signature of the text with the challenge of this connection',
      );
  }
  return readRegistration(document, { servicesMax });
}

function wrong(key: string, what: string, right: string): RegistrationError {
  return new RegistrationError([{ key, wrong: what, right }]);
}
