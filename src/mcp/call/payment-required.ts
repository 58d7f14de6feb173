import { formatUsd } from '#billing/amounts';
import type { Refusal } from '#gateway';
import { type PaidRequest, X402 } from './paid-request.ts';
import type { McpRequest } from '../request/mcp-request.ts';

/**
 * The tool result of the x402 transport for MCP, for a call that was refused because money is missing. It has the terms
 * as structured content and as text. For a modern client it is marked as complete, as every result must be.
 */
export async function paymentRequired(
  { client, message, service, payment }: Pick<McpRequest, 'client' | 'message' | 'service'> & PaidRequest,
  { amount, terms }: Refusal,
): Promise<string> {
  const tool = String(message.params?.['name']).toWellFormed();
  const required = await terms({
    url: `mcp://tool/${encodeURIComponent(tool)}`,
    description: `${service}: ${tool}, at most ${formatUsd(amount)} USDC a call`,
    mimeType: 'application/json',
  });
  return JSON.stringify({
    ...(client === 'modern' ? { resultType: 'complete' } : {}),
    isError: true,
    structuredContent: required,
    content: [{ type: 'text', text: JSON.stringify(required) }],
    ...(payment?.receipt ? { _meta: { [X402.response]: payment.receipt } } : {}),
  });
}
