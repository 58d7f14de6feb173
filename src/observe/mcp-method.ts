import type { Call } from '#gateway';

/** The MCP method of a call; null for calls of other primitives. */
export function mcpMethodOf({ primitive, free }: Pick<Call, 'primitive' | 'free'>): string | null {
  return primitive === 'tool' ? (free ?? 'tools/call') : null;
}
