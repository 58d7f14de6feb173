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
import { costOf, spentOn } from '#call';
import type { PaymentAttempt } from '#payments';
import type { CallCost, TaskCost } from '#tasks';
import { X402 } from '../wire/protocol.ts';
import { exactly } from '../wire/edit-json.ts';

/** The metadata member that names the agent in a request to the address of all agents. */
export const AGENT_KEY = 'tollgate/agent';

const MONEY = ['tollgate/generation', 'tollgate/receipt'] as const;
const WRAPPED = ['task', 'message', 'statusUpdate', 'artifactUpdate'] as const;

/**
 * Adds the cost to the metadata of the task, message or update in a reply, as MCP results have it in `_meta`. While the
 * work goes on, `settled` is null and only the id of the call is added.
 */
export function withCost(
  text: string,
  callId: string,
  settled: Pick<SettledFrame, 'settlement' | 'runCost' | 'receipt'> | null,
): string {
  const cost = settled === null ? {} : costOf(settled);
  return withMetadata(text, {
    'tollgate/generation': JSON.stringify({ id: callId, ...cost }),
    // A value from the agent is removed, because it is not a receipt of this gateway.
    'tollgate/receipt': settled?.receipt ? JSON.stringify(settled.receipt) : null,
  });
}

/**
 * Adds the cost of a task to the task or to one of its updates: the id of the call that began the task, and, after the
 * settlement, the sum of all its messages. `cost` is null before the settlement. The agent's own values for these
 * members are removed.
 */
export function withTaskCost(text: string, began: string | null, cost: TaskCost | null, wantsReceipt: boolean): string {
  const { generation, receipt } = taskMoney(began, cost);
  return withMetadata(text, {
    'tollgate/generation': generation === null ? null : JSON.stringify(generation),
    'tollgate/receipt': wantsReceipt && receipt !== null ? JSON.stringify(receipt) : null,
  });
}

/**
 * The cost of a task for its metadata: the sum of its calls, and each call. `receipt` is the receipt of the first call.
 */
export function taskMoney(
  began: string | null,
  cost: TaskCost | null,
): { readonly generation: JsonObject | null; readonly receipt: string | null } {
  const first = cost?.calls[0];
  if (cost === null || first === undefined) return { generation: began === null ? null : { id: began }, receipt: null };
  const sum = (amountOf: (call: CallCost) => bigint) =>
    formatUsd(cost.calls.reduce((all, call) => all + amountOf(call), 0n));
  const spent = ({ charged, runCost = charged }: CallCost) => runCost;
  const runs = cost.calls.some(({ runCost }) => runCost !== undefined);
  return {
    generation: {
      id: first.id,
      cost: sum(spent),
      ...(runs ? { own_cost: sum(({ charged }) => charged) } : {}),
      currency: 'USDC',
      ...(cost.calls.length > 1
        ? { calls: cost.calls.map((call) => ({ id: call.id, cost: formatUsd(spent(call)) })) }
        : {}),
    },
    receipt: first.receipt,
  };
}

/** The cost as headers of a reply that is not a stream, as in chat. */
export function costHeaders(
  callId: string,
  settled: Pick<SettledFrame, 'settlement' | 'runCost' | 'receipt'> | null,
): Readonly<Record<string, string>> {
  return {
    'x-generation-id': callId,
    ...(settled === null ? {} : { 'x-cost-usd': formatUsd(spentOn(settled)) }),
    ...(settled?.receipt ? { 'x-receipt': settled.receipt } : {}),
  };
}

/**
 * Adds the receipt of the payment to a reply, as the x402 extension requires: in the metadata of the message, or of the
 * task or update and its status message. Without a payment the reply is unchanged.
 */
export function withReceipt(text: string, payment: PaymentAttempt | null | undefined): string {
  if (!payment?.receipt) return text;
  const members = { [X402.status]: '"payment-completed"', [X402.receipts]: JSON.stringify([payment.receipt]) };
  return readable(text, (known) => withPaid(known, members));
}

function withPaid(text: string, members: Readonly<Record<string, string>>): string {
  const { inside } = holderIn(text);
  const status = inside.get('status');
  const message = status && text[status.start] === '{' ? membersOf(text, status.start).get('message') : undefined;
  const paid =
    message && text[message.start] === '{' ? inMetadata(text, message, membersOf(text, message.start), members) : text;
  return withMetadata(paid, members);
}

/**
 * Sets members in the `metadata` of the object in a result or event of either version. Values are JSON text; null
 * removes a member.
 */
export function withMetadata(text: string, members: Readonly<Record<string, string | null>>): string {
  return readable(text, (known) => {
    const { holder, inside } = holderIn(known);
    return inMetadata(known, holder, inside, members);
  });
}

/**
 * Runs `edit` on a text that may already be paid for, so duplicate keys must not fail it. The text is then parsed and
 * written again, which keeps the last of the duplicates, as most readers do.
 */
function readable(text: string, edit: (text: string) => string): string {
  try {
    return edit(text);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    return edit(JSON.stringify(exactly(text)));
  }
}

/**
 * Removes the members about money, which only this gateway may set, from an agent's value. Returns the same object if
 * it has none of them.
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
  const costMembers = `{${set.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
  return splice(text, [withMembers(text, holder, { metadata: costMembers })]);
}
