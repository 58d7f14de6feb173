import type { Call } from '#gateway';

/** The MCP method that a call is; null for calls of other primitives, which have no such method. */
export function mcpMethodOf({ primitive, free }: Pick<Call, 'primitive' | 'free'>): string | null {
  return primitive === 'tool' ? (free ?? 'tools/call') : null;
}
