import type { Call } from '#gateway';
import { codeOf } from './answer-error.ts';
import { mcpMethodOf } from './mcp-method.ts';
import { OPERATIONS } from './offer-series.ts';
import type { CallOutcome } from './observer.ts';

type Attributes = Readonly<Record<string, string>>;

/** What the spans of an MCP call are named and say, by the MCP semantic conventions. */
export interface McpSpan {
  /** The method alone: what stands behind it is not known to be a tool of the provider before that has answered. */
  readonly name: string;
  /** Of the side that faces the client; its protocol's facts among them. */
  readonly server: Attributes;
  /** Of the side that faces the provider, which may speak another revision and have other ids. */
  readonly client: Attributes;
}

/** null for a call that is none of MCP. */
export function mcpSpanOf(call: Call): McpSpan | null {
  const method = mcpMethodOf(call);
  if (method === null) return null;
  const tool =
    call.operation === null ? {} : { 'gen_ai.operation.name': OPERATIONS.tool, 'gen_ai.tool.name': call.operation };
  const client = { 'mcp.method.name': method, ...tool };
  return {
    name: method,
    server: { 'network.transport': 'tcp', 'network.protocol.name': 'http', ...call.facts, ...client },
    client,
  };
}

/** The name of an ended span, with the tool where it is one: consumers do not make up names of spans. */
export function mcpSpanName({ name }: McpSpan, { operation }: CallOutcome): string {
  return operation === null ? name : `${name} ${operation}`;
}

/** `error.type`, with the JSON-RPC code where it is one. */
export function mcpErrorAttributes(type: string): Attributes {
  const code = codeOf(type);
  return code === null ? { 'error.type': type } : { 'error.type': type, 'rpc.response.status_code': code };
}
