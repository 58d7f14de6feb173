import { hash } from 'node:crypto';
import type { RequestMessage } from '#json-rpc';
import { membersOf } from '#wire';
import { keyedRequest, paidCaller, paymentOf, type Payments } from '#payments';
import type { Caller } from '#accounts';
import type { UnpaidCall } from '#call';
import { formatUsd } from '#billing/amounts';
import type { McpRequest, OwnMeta } from './mcp-request.ts';
import { X402 } from '../wire/revisions.ts';

type Payer = Pick<McpRequest, 'caller' | 'payment'>;

/**
 * Reads the payment of a request. `target`: the called service, as the request names it. All rounds of a call count as
 * the same request for a payment, because they are one call. Throws GatewayError `invalid_request`,
 * `service_unavailable`.
 */
export type ReadPaid = (caller: Caller, target: string, own: OwnMeta) => Payer | Promise<Payer>;

export function createReadPaid(payments: Payments): ReadPaid {
  return (caller, target, { message, payment: paymentMeta, idempotencyKey }) => {
    if (!payments.open || paymentMeta === undefined || message.method !== 'tools/call')
      return { caller, payment: null };
    const payment = paymentOf(paymentMeta, `params._meta["${X402.payment}"]`, () =>
      keyedRequest(requestDigest(target, message, false), idempotencyKey),
    );
    return paidCaller(payments, caller, payment).then((paying) => ({ caller: paying, payment }));
  };
}

/**
 * The tool result of the x402 transport for MCP, for a call that was refused because money is missing. It has the terms
 * as structured content and as text. For a modern client it is marked as complete, as every result must be.
 */
export async function paymentRequired(
  { client, message, service, payment }: McpRequest,
  { amount, terms }: UnpaidCall,
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

/** The content of a request that a person accepts: the tool's name and arguments as they are written. */
export function contentOf({ text, members }: RequestMessage): string {
  const whole = members.get('params');
  const params = whole && membersOf(text, whole.start);
  return ['name', 'arguments']
    .flatMap((key) => {
      const member = params?.get(key);
      return member ? [text.slice(member.start, member.end)] : [];
    })
    .join(' ');
}

/**
 * The identity of a request: SHA-256, in hex, of `target`, the method, and the tool's name and arguments as they are
 * written, without ids and tokens. `answers`: include the client's answers to a round.
 */
export function requestDigest(target: string, message: RequestMessage, answers: boolean): string {
  const whole = message.members.get('params');
  const params = whole && membersOf(message.text, whole.start);
  const parts = (answers ? ['name', 'arguments', 'inputResponses'] : ['name', 'arguments']).map((key) => {
    const member = params?.get(key);
    return member ? message.text.slice(member.start, member.end) : null;
  });
  return hash('sha256', JSON.stringify([target, message.method, ...parts]));
}
