import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#errors';
import { createSealedTexts, type SealSecret } from '#security';
import { bearerOf, CLIENT_SECRET_PREFIX, readCredential, unauthorized } from './credential.ts';

/** A client secret opens realtime sessions of one model, in the name of the key that made it. */
export interface SecretGrant {
  readonly account: string;
  /** SHA-256 of the text of the API key, or the hash of a key whose text nobody has. With it, its secrets end. */
  readonly secret: string;
  /** The model by the name that its maker gave. */
  readonly model: string;
  readonly session: Readonly<Record<string, unknown>>;
}

/**
 * Short-lived credentials that a server gets with its API key and gives to a browser. Nothing is stored: the secret is
 * encrypted, so it has all that it grants, and shows nothing of it.
 */
export interface ClientSecrets {
  /** Throws GatewayError `invalid_request` for a grant that is too long for a header. */
  issue(grant: SecretGrant, expiresAt: number): string;
  /** null for a text that is not a secret of this installation, was changed, or has expired. */
  open(text: string): SecretGrant | null;
}

/**
 * The most characters of a secret. Browsers send it in one header line with other subprotocols, and nginx accepts 8 KiB
 * for a line.
 */
const TEXT_MAX = 7_680;
const PURPOSE = 'client secret';

/** `secret`: 32 bytes that all gateways of one installation share. */
export function createClientSecrets({
  secret,
  now,
}: {
  readonly secret: SealSecret;
  readonly now: () => number;
}): ClientSecrets {
  const texts = createSealedTexts(secret);
  return {
    issue({ account, secret: ofText, model, session }, expiresAt) {
      const sealed = texts.seal(PURPOSE, JSON.stringify([expiresAt, account, ofText, model, session]));
      const text = CLIENT_SECRET_PREFIX + sealed;
      if (text.length <= TEXT_MAX) return text;
      throw new GatewayError(
        'invalid_request',
        `session is too long: the secret would have ${text.length} characters, and may have ${TEXT_MAX}, because browsers send it in a header. Leave long instructions and tools out, and send them in session.update`,
        { param: 'session' },
      );
    },
    open(text) {
      if (!text.startsWith(CLIENT_SECRET_PREFIX) || text.length > TEXT_MAX) return null;
      const plainText = texts.open(PURPOSE, text.slice(CLIENT_SECRET_PREFIX.length));
      if (plainText === null) return null;
      const [expiresAt, account, ofText, model, session] = JSON.parse(plainText) as [
        number,
        SecretGrant['account'],
        SecretGrant['secret'],
        SecretGrant['model'],
        SecretGrant['session'],
      ];
      return expiresAt > now() ? { account, secret: ofText, model, session } : null;
    },
  };
}

const GRANT = Symbol('client secret');
type Granted = IncomingHttpHeaders & { [GRANT]?: SecretGrant };

/**
 * Lets a client secret count as the credential of these headers, for as long as its key is valid: a session goes on
 * when its secret has expired. null if the headers have another credential. Throws GatewayError `unauthorized` for a
 * secret that opens nothing. The mark is a symbol on the headers, which no client can send.
 */
export function letSecretCount(headers: IncomingHttpHeaders, secrets: Pick<ClientSecrets, 'open'>): SecretGrant | null {
  const { authorization } = headers;
  if (authorization === undefined || !bearerOf(authorization)?.startsWith(CLIENT_SECRET_PREFIX)) return null;
  // Refuses another key beside it.
  const grant = secrets.open(readCredential(headers));
  if (grant === null)
    throw unauthorized('This client secret is not valid here, or has expired: ask your server for another one');
  (headers as Granted)[GRANT] = grant;
  return grant;
}

export const grantOf = (headers: IncomingHttpHeaders): SecretGrant | undefined => (headers as Granted)[GRANT];
