import { constants, createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export type Algorithm = 'RS256' | 'PS256' | 'ES256' | 'EdDSA';

/** A key pair of an issuer. */
export interface IssuerKey {
  readonly kid: string;
  readonly algorithm: Algorithm;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export type Json = Readonly<Record<string, unknown>>;

export function issuerKey(kid: string, algorithm: Algorithm = 'EdDSA'): IssuerKey {
  const pair =
    algorithm === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : algorithm === 'EdDSA'
        ? generateKeyPairSync('ed25519')
        : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { kid, algorithm, ...pair };
}

export const jwkOf = ({ kid, algorithm, publicKey }: IssuerKey): Json => ({
  ...publicKey.export({ format: 'jwk' }),
  kid,
  alg: algorithm,
  use: 'sig',
});

const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

/**
 * A JWT as an issuer makes it; fields of `header` win, and one that is undefined is left out. A text as claims
 * stands as it is.
 */
export function mint(key: IssuerKey, claims: Json | string, header: Json = {}): string {
  const text = `${part({ alg: key.algorithm, typ: 'at+jwt', kid: key.kid, ...header })}.${part(claims)}`;
  return `${text}.${signatureOf(key, text).toString('base64url')}`;
}

export function signatureOf({ algorithm, privateKey }: IssuerKey, text: string): Buffer {
  const data = Buffer.from(text);
  if (algorithm === 'EdDSA') return sign(null, data, privateKey);
  if (algorithm === 'ES256') return sign('sha256', data, { key: privateKey, dsaEncoding: 'ieee-p1363' });
  if (algorithm === 'PS256')
    return sign('sha256', data, { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 });
  return sign('sha256', data, privateKey);
}

/** The classic forgery: the public key, which all know, taken as the secret of a MAC. */
export function mintByPublicKey(key: IssuerKey, claims: Json): string {
  const text = `${part({ alg: 'HS256', typ: 'at+jwt', kid: key.kid })}.${part(claims)}`;
  const secret = key.publicKey.export({ type: 'spki', format: 'pem' });
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

export interface Issuer {
  readonly url: string;
  /** What it shows as its keys: change it at will. */
  readonly keys: Json[];
  /** Paths that were asked for, in order. */
  readonly asked: string[];
  /** Answers in its place, where it is set. */
  answer: ((request: IncomingMessage, response: ServerResponse) => void) | null;
}

export interface IssuerOptions {
  readonly path?: string;
  readonly wellKnown?: string | null;
  /** Fields of its metadata that are otherwise. */
  readonly metadata?: Json;
}

/** An authorization server on a real socket that has metadata, at `wellKnown` alone where that is given, and keys. */
export async function startIssuer({ path = '', wellKnown = null, metadata = {} }: IssuerOptions = {}): Promise<Issuer> {
  const keys: Json[] = [];
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    if (issuer.answer) return issuer.answer(request, response);
    const isMetadata =
      wellKnown === null ? request.url === `/.well-known/oauth-authorization-server${path}` : request.url === wellKnown;
    if (request.url === '/keys') response.end(JSON.stringify({ keys }));
    else if (isMetadata)
      response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${new URL(issuer.url).origin}/keys`, ...metadata }));
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer: Issuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    keys,
    asked,
    answer: null,
  };
  return issuer;
}
