import type { Call } from '#gateway';
import { codeOf } from './answer-error.ts';
import { mcpMethodOf } from './mcp-method.ts';
import { OPERATIONS } from './offer-series.ts';
import type { CallOutcome } from './observer.ts';

type Attributes = Readonly<Record<string, string>>;

/** The names and attributes of the spans of an MCP call, by the MCP semantic conventions. */
export interface McpSpan {
  /** The method alone: the tool's name may be made up, until the provider has answered. */
  readonly name: string;
  /** Attributes of the span that faces the client, with the facts of its protocol. */
  readonly server: Attributes;
  /** Attributes of the spans that face the provider, which may speak another revision and have other ids. */
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

/** The name of an ended span, with the tool if it is known: consumers cannot make up names of spans. */
export function mcpSpanName({ name }: McpSpan, { operation }: CallOutcome): string {
  return operation === null ? name : `${name} ${operation}`;
}

/** `error.type`, and the JSON-RPC code if the type is one. */
export function mcpErrorAttributes(type: string): Attributes {
  const code = codeOf(type);
  return code === null ? { 'error.type': type } : { 'error.type': type, 'rpc.response.status_code': code };
}
