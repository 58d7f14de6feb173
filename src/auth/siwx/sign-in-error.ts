import { GatewayError } from '#wire';

/** The error of a sign-in that is refused: 401. `message` tells the developer what is wrong. */
export function signInError(message: string): GatewayError {
  return new GatewayError('unauthorized', message, { headers: { 'www-authenticate': 'SIWx, Bearer' } });
}

/** Text from a stranger as an error message repeats it: quoted, escaped and short. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text).replace(/[^ -~…]/g, '?');
}
