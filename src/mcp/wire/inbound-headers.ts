import type { RequestMessage } from '#wire';
import { decodeHeaderValue } from './header-value.ts';
import { MODERN_METHODS } from './revisions.ts';
import { nameOf } from './param-headers.ts';
import { quote } from './quote.ts';

/** Headers of a POST, unchanged. A missing header is null. */
export interface InboundHeaders {
  /** MCP-Protocol-Version */
  readonly version: string | null;
  /** Mcp-Method */
  readonly method: string | null;
  /** Mcp-Name */
  readonly name: string | null;
  /** Mcp-Session-Id */
  readonly session: string | null;
  readonly accept: string | null;
}

/** Says how the MCP-Protocol-Version header disagrees with the body; null if they agree or the header is absent. */
export function versionFault(version: string, headers: InboundHeaders): string | null {
  if (headers.version === null || headers.version === version) return null;
  return `the MCP-Protocol-Version header names ${quote(headers.version)}, the body ${quote(version)}`;
}

/** Says how the Mcp-Method header disagrees with the body; null if they agree or the header is absent. */
export function methodFault(method: string, headers: InboundHeaders): string | null {
  if (headers.method === null || headers.method === method) return null;
  return `the Mcp-Method header names ${quote(headers.method)}, the body ${quote(method)}`;
}

/** Says which header of a modern request is missing, or how Mcp-Name is wrong; null if all headers are right. */
export function missingHeaderFault({ method, params }: RequestMessage, headers: InboundHeaders): string | null {
  if (headers.version === null) return 'the MCP-Protocol-Version header is missing';
  if (headers.method === null) return 'the Mcp-Method header is missing';
  const name = nameOf(method, params);
  const said =
    headers.name === null || MODERN_METHODS[method]?.nameParam === undefined
      ? undefined
      : decodeHeaderValue(headers.name);
  if (said === null) return 'the Mcp-Name header is not valid Base64 of UTF-8';
  if (name === null) return null;
  if (said === undefined) return `the Mcp-Name header is missing, and the body names ${quote(name)}`;
  return said === name ? null : `the Mcp-Name header names ${quote(said)}, the body ${quote(name)}`;
}
