import { codeOf } from '#billing/call-end';
import type { Call } from '#call';
import type { CallOutcome } from './observer.ts';
import { OPERATIONS } from './offer-series.ts';

type Attributes = Readonly<Record<string, string>>;

/** The name and attributes of the spans of an MCP call, according to the MCP semantic conventions. */
export interface McpSpan {
  /** The method alone, because the consumer may have invented the tool's name until the provider has answered. */
  readonly name: string;
  readonly server: Attributes;
  /** Attributes of the spans for the provider's side. The provider may use another revision and other ids. */
  readonly client: Attributes;
}

/** null for a call of another primitive. */
export function mcpSpanOf(call: Call): McpSpan | null {
  const method = mcpMethodOf(call);
  if (method === null) return null;
  const tool =
    call.operation === null ? {} : { 'gen_ai.operation.name': OPERATIONS.tool, 'gen_ai.tool.name': call.operation };
  const client = { 'mcp.method.name': method, ...tool };
  return {
    name: method,
    server: { 'network.transport': 'tcp', 'network.protocol.name': 'http', ...call.facts?.(), ...client },
    client,
  };
}

/** The name of an ended span, with the tool if it is known. So consumers cannot invent span names. */
export function mcpSpanName({ name }: McpSpan, { operation }: CallOutcome): string {
  return operation === null ? name : `${name} ${operation}`;
}

/** `error.type`, and the JSON-RPC code if the type is such a code. */
export function mcpErrorAttributes(type: string): Attributes {
  const code = codeOf(type);
  return code === null ? { 'error.type': type } : { 'error.type': type, 'rpc.response.status_code': code };
}

/** The MCP method of a call; null for calls of other primitives. */
export function mcpMethodOf({ primitive, free }: Pick<Call, 'primitive' | 'free'>): string | null {
  return primitive === 'tool' ? (free ?? 'tools/call') : null;
}
