import {
  isObject,
  membersOf,
  RawJsonError,
  splice,
  withMembers,
  type JsonObject,
  type Members,
  type Span,
} from '#wire';
import { formatUsd, type SettledFrame } from '#billing/amounts';
import { costOf, type PaymentSlip } from '#gateway';
import type { CallCost, TaskCost } from '#tasks';
import { X402 } from './paid-message.ts';

/** Names an agent among all. */
export const AGENT_KEY = 'tollgate/agent';

const MONEY = ['tollgate/generation', 'tollgate/receipt'] as const;
const WRAPPED = ['task', 'message', 'statusUpdate', 'artifactUpdate'] as const;

/**
 * A reply with what it cost in the metadata of its task, message or update, as the results of MCP have it in
 * `_meta`. `settled` is null while the work goes on: then only the call is named.
 */
export function withCost(
  text: string,
  callId: string,
  settled: Pick<SettledFrame, 'settlement' | 'runCost' | 'receipt'> | null,
): string {
  const cost = settled === null ? {} : costOf(settled);
  return withMetadata(text, {
    'tollgate/generation': JSON.stringify({ id: callId, ...cost }),
    // An agent's own value there is not a receipt of this gateway.
    'tollgate/receipt': settled?.receipt ? JSON.stringify(settled.receipt) : null,
  });
}

/**
 * Adds the cost of a task to it or to an update of it: the call that began it, and the sum of all its messages once
 * the task is settled. `cost` is null before that. The agent's own words about it are removed.
 */
export function withTaskCost(text: string, began: string | null, cost: TaskCost | null, wantsReceipt: boolean): string {
  const { generation, receipt } = taskMoney(began, cost);
  return withMetadata(text, {
    'tollgate/generation': generation === null ? null : JSON.stringify(generation),
    'tollgate/receipt': wantsReceipt && receipt !== null ? JSON.stringify(receipt) : null,
  });
}

/**
 * The money of a task, for its metadata: the sum of its calls, and each call by itself. `receipt` is that of the
 * first call.
 */
export function taskMoney(
  began: string | null,
  cost: TaskCost | null,
): { readonly generation: JsonObject | null; readonly receipt: string | null } {
  const first = cost?.calls[0];
  if (cost === null || first === undefined) return { generation: began === null ? null : { id: began }, receipt: null };
  const sum = (of: (call: CallCost) => bigint) => formatUsd(cost.calls.reduce((all, call) => all + of(call), 0n));
  const runs = cost.calls.some(({ runCost }) => runCost !== undefined);
  return {
    generation: {
      id: first.id,
      cost: sum(({ charged }) => charged),
      ...(runs ? { run_cost: sum(({ charged, runCost = charged }) => runCost) } : {}),
      currency: 'USDC',
      ...(cost.calls.length > 1
        ? { calls: cost.calls.map(({ id, charged }) => ({ id, cost: formatUsd(charged) })) }
        : {}),
    },
    receipt: first.receipt,
  };
}

/** The same as headers of a reply that is not a stream, as chat has them. */
export function costHeaders(
  callId: string,
  settled: Pick<SettledFrame, 'settlement' | 'receipt'> | null,
): Readonly<Record<string, string>> {
  return {
    'x-generation-id': callId,
    ...(settled === null ? {} : { 'x-cost-usd': formatUsd(settled.settlement.charged) }),
    ...(settled?.receipt ? { 'x-receipt': settled.receipt } : {}),
  };
}

/**
 * A reply that tells of the payment that was taken for it, by the x402 extension: in the metadata of the message,
 * or of the task or update and of its status message. As it is without one.
 */
export function withReceipt(text: string, payment: PaymentSlip | null | undefined): string {
  if (!payment?.receipt) return text;
  const members = { [X402.status]: '"payment-completed"', [X402.receipts]: JSON.stringify([payment.receipt]) };
  return readable(text, (known) => withPaid(known, members));
}

function withPaid(text: string, members: Readonly<Record<string, string>>): string {
  const { inside } = holderIn(text);
  const status = inside.get('status');
  const message = status && text[status.start] === '{' ? membersOf(text, status.start).get('message') : undefined;
  const told =
    message && text[message.start] === '{' ? inMetadata(text, message, membersOf(text, message.start), members) : text;
  return withMetadata(told, members);
}

/**
 * A result or an event of either version, with members set in the `metadata` of what it holds: JSON text, null removes.
 */
export function withMetadata(text: string, members: Readonly<Record<string, string | null>>): string {
  return readable(text, (known) => {
    const { holder, inside } = holderIn(known);
    return inMetadata(known, holder, inside, members);
  });
}

/**
 * Runs `edit` on a text that may be paid for by now. Of a key that stands twice in it the last counts, as for most
 * readers.
 */
function readable(text: string, edit: (text: string) => string): string {
  try {
    return edit(text);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    return edit(JSON.stringify(JSON.parse(text)));
  }
}

/**
 * Removes the members that only this gateway may set, which are about money, from an agent's value. Returns the
 * same value where it has no such member.
 */
export function withoutMoney(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { metadata } = value;
  if (isObject(metadata) && MONEY.some((name) => Object.hasOwn(metadata, name))) {
    const { [MONEY[0]]: _generation, [MONEY[1]]: _receipt, ...rest } = metadata;
    return { ...value, metadata: rest };
  }
  const wrapper = Object.hasOwn(value, 'kind') ? undefined : WRAPPED.find((name) => isObject(value[name]));
  if (wrapper === undefined) return value;
  const inner = withoutMoney(value[wrapper]);
  return inner === value[wrapper] ? value : { ...value, [wrapper]: inner };
}

/** The task, message or update that a result or an event holds. */
function holderIn(text: string): { readonly holder: Span; readonly inside: Members } {
  const top = membersOf(text);
  const wrapped = top.has('kind')
    ? undefined
    : WRAPPED.map((name) => top.get(name)).find((span) => span !== undefined && text[span.start] === '{');
  if (wrapped) return { holder: wrapped, inside: membersOf(text, wrapped.start) };
  return { holder: { start: text.indexOf('{'), end: text.lastIndexOf('}') + 1 }, inside: top };
}

function inMetadata(
  text: string,
  holder: Span,
  inside: Members,
  members: Readonly<Record<string, string | null>>,
): string {
  const metadata = inside.get('metadata');
  if (metadata && text[metadata.start] === '{') return splice(text, [withMembers(text, metadata, members)]);
  const set = Object.entries(members).filter(([, value]) => value !== null);
  if (set.length === 0) return text;
  const made = `{${set.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
  return splice(text, [withMembers(text, holder, { metadata: made })]);
}
