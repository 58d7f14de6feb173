import type { InboundHeaders } from '../../../src/mcp/wire/classify.ts';

export const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

export const NO_HEADERS: InboundHeaders = { version: null, method: null, name: null, session: null, accept: null };

/** The text of a request; `_meta` is the modern envelope unless another is given, null for none. */
export function requestText(
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  meta: unknown = ENVELOPE,
): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: meta === null ? params : { ...params, _meta: meta } });
}

/** Headers as a modern client sends them. */
export function modernHeaders(method: string, name: string | null = null): InboundHeaders {
  return { version: '2026-07-28', method, name, session: null, accept: 'application/json, text/event-stream' };
}
