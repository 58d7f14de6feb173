import { DPOP_ALGORITHMS } from '#auth';

/** An error in the names of RFC 6749, with what the request was, as far as the text depends on it. */
interface DescribedError {
  readonly error: string;
  /** Of the library; undefined for none. */
  readonly description: string | undefined;
  readonly grantType?: string | undefined;
  readonly issuer: string;
}

const AGAIN = 'Let the person sign in again';

/** Texts of the library, in words for somebody who has never seen it. Its other texts name what is wrong. */
const OF_LIBRARY: Readonly<Record<string, string>> = {
  'Authorization Server policy requires PKCE to be used for this request':
    'code_challenge is missing: PKCE (RFC 7636) is required, with code_challenge_method=S256',
  'not supported value of code_challenge_method': 'code_challenge_method must be S256',
  'code_challenge_method must be provided': 'code_challenge_method is missing: it must be S256',
  'no client authentication mechanism provided': 'client_id is missing',
  'client_id metadata document fetch failed':
    'The gateway cannot read the document at client_id. If it cannot reach the internet, its operator sets authorization.client_documents = false: clients then register themselves',
  'redirect_uris must contain members':
    'redirect_uris must be a list of addresses, each of at most 2048 characters and without a user: https, a scheme of the program itself, or http to loopback',
};

/** The meaning of an error here, by its code, whatever the library says of it. */
const OF_CODES: Readonly<Record<string, (error: DescribedError) => string>> = {
  invalid_grant: ({ grantType }) =>
    grantType === 'refresh_token'
      ? `This refresh token is unknown, has expired, was used before, is for another client, resource or DPoP key, or the person has ended the access. ${AGAIN}`
      : `This code is unknown, has expired after a minute, was used before, or came with another client_id, redirect_uri, code_verifier, resource or DPoP key than its request. ${AGAIN}`,
  invalid_client: () =>
    'No client has this client_id, or its secret or signed assertion is missing or wrong. A client that is gone has to register again',
  invalid_target: ({ issuer, description }) =>
    description?.startsWith('only a single') === true
      ? 'A token is for one address of this gateway: name one resource'
      : `resource must be the address of this gateway that the token shall be for, as its metadata names it, such as ${issuer}/mcp, and one that the person has agreed to`,
  invalid_redirect_uri: ({ description }) =>
    description?.startsWith('redirect_uris') === true
      ? description
      : 'redirect_uri must be one of those that the client has registered, letter by letter; only the port of an address of loopback may differ',
  invalid_scope: () => 'The only scope is "call". What a program may do is agreed with the person',
  invalid_dpop_proof: () =>
    `The DPoP header must be a JWT of type dpop+jwt for this method and address, with a new jti and the present time as its iat, signed with ${DPOP_ALGORITHMS.join(', ')}`,
  unsupported_grant_type: () => 'grant_type must be authorization_code or refresh_token',
  unsupported_response_type: () => 'response_type must be code',
  unsupported_response_mode: () => 'response_mode must be query, fragment or form_post',
  request_not_supported: () => 'A request in a JWT is not supported: send its parameters themselves',
  request_uri_not_supported: () => 'A request at an address is not supported: send its parameters themselves',
  registration_not_supported: () => 'A registration in a request is not supported: register first',
  consent_required: () => 'A person has to agree to every sign-in: leave prompt=none out',
  server_error: () => 'The gateway failed, and its log has the reason. Try again later',
};

export function describeError(error: DescribedError): string | undefined {
  const ofLibrary = error.description === undefined ? undefined : OF_LIBRARY[error.description];
  return ofLibrary ?? OF_CODES[error.error]?.(error) ?? error.description;
}

/** The address of a client that gets an error in its query or its fragment, with the description for people. */
export function describeInAddress(location: string, issuer: string): string {
  const url = URL.parse(location);
  if (url === null) return location;
  const inFragment = url.hash.length > 1;
  const parameters = new URLSearchParams(inFragment ? url.hash.slice(1) : url.search);
  const error = parameters.get('error');
  if (error === null || parameters.get('iss') !== issuer) return location;
  const description = parameters.get('error_description') ?? undefined;
  const described = describeError({ error, description, issuer });
  if (described === undefined || described === description) return location;
  parameters.set('error_description', described);
  if (inFragment) url.hash = parameters.toString();
  else url.search = parameters.toString();
  return url.href;
}
