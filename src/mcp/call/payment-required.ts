import type { GatewayError } from '#wire';
import { formatUsd, type MicroUsd } from '#billing/amounts';
import { NO_PAYMENTS, PaymentNeeded, type Payments } from '#gateway';
import { type PaidRequest, X402 } from './paid-request.ts';
import type { Turn } from '../turn/turn.ts';

/**
 * What a caller gets whose money does not reach: the tool result of the x402 transport for MCP, with the terms as
 * structured content and as text. A modern client gets it marked as complete, as every result is there. `least`:
 * what the call would have locked.
 */
export async function paymentRequired(
  payments: Payments,
  { client, message, service, caller, payment }: Pick<Turn, 'client' | 'message' | 'service'> & PaidRequest,
  error: GatewayError,
  least: MicroUsd,
): Promise<string> {
  const tool = String(message.params?.['name']).toWellFormed();
  // Where a limit is what is too low, a payment would not help.
  const payable = error instanceof PaymentNeeded;
  const amount = payable ? error.missing : least;
  const required = await (payable ? payments : NO_PAYMENTS).required({
    caller,
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
    ...(payment?.receipt ? { _meta: { [X402.response]: payment.receipt } } : {}),
  });
}
