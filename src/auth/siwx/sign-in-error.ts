import { GatewayError } from '#wire';

/** The error of a refused sign-in (401). `message` tells the developer what is wrong. */
export function signInError(message: string): GatewayError {
  return new GatewayError('unauthorized', message, { headers: { 'www-authenticate': 'SIWx, Bearer' } });
}

/** Untrusted text for an error message: quoted, escaped and shortened. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text).replace(/[^ -~…]/g, '?');
}
