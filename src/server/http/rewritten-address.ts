import type { IncomingHttpHeaders } from 'node:http';
import { STRICT_PREFIX, withoutEndSlashes } from './error-table.ts';

/*
 * Addresses that clients make of a base URL without `/api`, those of Google's and Cohere's APIs, and those that people
 * paste with a slash at their end. The router sees one form of each.
 */

/** Addresses of programs. Pages are not among them: `/models/` is another place than `/models`. */
const OF_PROTOCOLS = /^\/(?:mcp|a2a|(?:api\/)?v\d\w*)\//;

/** The beginning of the addresses of Google's API, for the router. */
const GOOGLE_MODELS = '/api/v1beta/models';
/** The same as clients write it: with and without `/api`, in the two versions of the API that are the same here. */
const GOOGLES = /^(?:\/api)?\/(v1|v1beta)\/models(?=[/?]|$)/;
/**
 * The same for a model without `models/` before it, as the AI SDK writes a name that has a slash. A second version is a
 * wrong base URL instead.
 */
const WITHOUT_COLLECTION = /^(?:\/api)?\/(?:v1|v1beta)(?=\/)(?!\/v\d\w*\/models\/)/;
/** A method of a model, which no other API has in its addresses. */
const METHOD = /^[^?]*:(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)(?:\?|$)/;

/** The address that Cohere's client makes of a base URL. */
const COHERES = /^\/v2\/rerank(?=[/?]|$)/;

/** The address that the router gets for the address that a client asked for. */
export function rewrittenAddress({
  url: written = '/',
  headers,
}: {
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}): string {
  const url = withoutSlash(written);
  const google = GOOGLES.exec(url);
  if (google !== null && (google[1] === 'v1beta' || METHOD.test(url) || isGoogles(headers)))
    return GOOGLE_MODELS + withOneName(url.slice(google[0].length));
  const bare = METHOD.test(url) ? WITHOUT_COLLECTION.exec(url) : null;
  if (bare !== null) return GOOGLE_MODELS + withOneName(url.slice(bare[0].length));
  return url.startsWith(STRICT_PREFIX) || COHERES.test(url) ? `/api${url}` : url;
}

function withoutSlash(url: string): string {
  const query = url.indexOf('?');
  const end = query === -1 ? url.length : query;
  if (url.charCodeAt(end - 1) !== SLASH || !OF_PROTOCOLS.test(url)) return url;
  return withoutEndSlashes(url.slice(0, end)) + url.slice(end);
}

const SLASH = 0x2f;

/** Whether a client of Google's API asks. OpenAI's API has lists of models at the same addresses. */
const isGoogles = (headers: IncomingHttpHeaders): boolean => headers['x-goog-api-key'] !== undefined;

/**
 * In Google's API a colon and a method follow the name of a model, as in `/models/demo/chat:generateContent`. The
 * router ends a name at a slash, so the slashes in it are encoded.
 */
function withOneName(rest: string): string {
  const query = rest.indexOf('?');
  const end = query === -1 ? rest.length : query;
  const name = rest.slice(1, end);
  return name.includes('/') ? `/${name.replaceAll('/', '%2F')}${rest.slice(end)}` : rest;
}
