import { MODERN } from '../wire/revisions.ts';

/** Headers of each message that the gateway posts to a server. */
export const POST_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
} as const;

/** The same, for a modern server. */
export const MODERN_POST_HEADERS = { ...POST_HEADERS, 'mcp-protocol-version': MODERN } as const;
