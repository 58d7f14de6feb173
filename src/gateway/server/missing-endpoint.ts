import { withoutEndSlashes } from '#wire';

const NO_OAUTH =
  'This gateway registers no OAuth clients. Give the client an API key, as the header "Authorization: Bearer <key>"';
/** Paths that clients append to a base URL. */
const APPENDED =
  /\/((?:chat\/)?completions|messages|messages\/count_tokens|responses|embeddings|models|images\/generations)$/;

const OF_API = /^\/api\/v1\//;

/**
 * The text of a 404 for an address that does not exist. `path`: without its query. `exists`: whether another path
 * exists. Clients show the text to people who did not choose the address, because the client built it from a base URL.
 * MCP clients whose key does not work call `/register`, because they take the 401 as an invitation to sign in.
 */
export function missingEndpoint(method: string, path: string, exists: (path: string) => boolean): string {
  if (path === '/register') return NO_OAUTH;
  const bare = withoutEndSlashes(path);
  const [, appended] = APPENDED.exec(bare) ?? [];
  // Outside of the API, what clients append is a page: `/models` shows models to people.
  const isThere = bare !== '' && bare !== path && (appended === undefined || OF_API.test(path)) && exists(bare);
  if (isThere)
    return `No such endpoint: ${method} ${path.slice(0, 200)}. It is at ${bare.slice(0, 200)}, without the slash at its end`;
  const base = appended === undefined ? '' : ` It is at /api/v1/${appended}: check the base URL of the client.`;
  return `No such endpoint: ${method} ${path.slice(0, 200)}.${base} See /docs`;
}
