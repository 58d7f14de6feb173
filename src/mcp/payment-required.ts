import { formatUsd, type GatewayError, type MicroUsd, type PaymentTerms } from '#gateway';
import type { Turn } from './turn.ts';

/**
 * What a caller gets whose money does not reach: the tool result of the x402 transport for MCP, with the terms as structured content and as text.
 * A modern client gets it marked as complete, as every result is there.
 */
export function paymentRequired(
  terms: PaymentTerms,
  { client, message, service }: Pick<Turn, 'client' | 'message' | 'service'>,
  error: GatewayError,
  amount: MicroUsd,
): string {
  const tool = String(message.params?.['name']);
  const required = terms.required({
    error: error.message,
    resource: {
      url: `mcp://tool/${encodeURIComponent(tool)}`,
      description: `${service}: ${tool}, at most ${formatUsd(amount)} USDC a call`,
      mimeType: 'application/json',
    },
    amount,
  });
  return JSON.stringify({
    ...(client === 'modern' ? { resultType: 'complete' } : {}),
    isError: true,
    structuredContent: required,
    content: [{ type: 'text', text: JSON.stringify(required) }],
  });
}
