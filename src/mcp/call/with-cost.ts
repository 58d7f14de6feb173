import { membersOf, RawJsonError } from '#wire';
import type { Call, CostOf } from '#gateway';
import { withMeta } from '../wire/meta.ts';
import { X402 } from './paid-request.ts';
import type { McpTail } from '../turn/turn.ts';

/**
 * The response of a billed call with what it cost in its `_meta`; `cost` is in USDC, null while that is not known.
 * One without a result stays as it is.
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
  // What a server writes there itself is no receipt of this gateway.
  const told = {
    ...generation,
    'tollgate/receipt': receipt === null ? null : JSON.stringify(receipt),
    [X402.response]: payment?.receipt ? JSON.stringify(payment.receipt) : null,
  };
  try {
    return withMeta(text, 'result', told, read);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    // A key stands twice in what is paid for by now: the last counts, as for most who read it.
    return withMeta(JSON.stringify(JSON.parse(text)), 'result', told);
  }
}
