import type { IncomingHttpHeaders } from 'node:http';
import { pathOf } from './resources.ts';

const PATH = Symbol('path of the request');
type Marked = IncomingHttpHeaders & { [PATH]?: string };

/**
 * Notes the path of a request for the check of an access token, which is for the resource at one path. The mark is a
 * symbol on the headers, because authentication gets only the headers, and no client can send a symbol.
 */
export function noteAskedPath(request: { readonly url: string; readonly headers: IncomingHttpHeaders }): void {
  // Tokens have dots. The many requests with a key need no mark.
  if (request.headers.authorization?.includes('.')) (request.headers as Marked)[PATH] = pathOf(request);
}

/** The path of a request. null if nobody noted it; then only a token for the whole gateway is accepted. */
export const askedPathOf = (headers: IncomingHttpHeaders): string | null => (headers as Marked)[PATH] ?? null;
