import { GatewayError } from '#wire';

const SESSION_ID_MAX = 256;

/** The session that the body or a header names; null for none. Throws GatewayError `invalid_request`. */
export function requestedSession(
  body: { readonly session_id?: string | null },
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string | null {
  if (body.session_id) return body.session_id;
  const header = headers['x-session-id'];
  if (typeof header !== 'string' || header === '') return null;
  if (header.length > SESSION_ID_MAX)
    throw new GatewayError('invalid_request', `The x-session-id header must be at most ${SESSION_ID_MAX} characters`, {
      param: 'x-session-id',
    });
  return header;
}
