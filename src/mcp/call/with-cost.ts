import { membersOf, RawJsonError } from '#wire';
import type { Call, CostOf } from '#gateway';
import { withMeta } from '../wire/meta.ts';
import { X402 } from './paid-request.ts';
import type { McpTail } from '../request/mcp-request.ts';

/**
 * The response of a billed call, with its cost in the `_meta` of the result. `cost` is in USDC; null while it is not
 * known. A response without a result is unchanged.
 */
export function withCost(
  { text, message }: McpTail,
  { id, payment }: Pick<Call, 'id' | 'payment'>,
  cost: CostOf | null,
  receipt: string | null,
): string {
  const read = message?.text === text ? message : null;
  if (!(read?.members ?? membersOf(text)).has('result')) return text;
  const generation = { 'tollgate/generation': JSON.stringify({ id, ...cost }) };
  // Null removes a value that the server wrote, because it is not a receipt of this gateway.
  const told = {
    ...generation,
    'tollgate/receipt': receipt === null ? null : JSON.stringify(receipt),
    [X402.response]: payment?.receipt ? JSON.stringify(payment.receipt) : null,
  };
  try {
    return withMeta(text, 'result', told, read);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    // A key occurs twice. The response is already paid for, so it is parsed: the last value counts, as for most
    // readers.
    return withMeta(JSON.stringify(JSON.parse(text)), 'result', told);
  }
}
