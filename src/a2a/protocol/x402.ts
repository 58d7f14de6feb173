import { hash } from 'node:crypto';
import { isObject, membersOf, splice, withMembers, type JsonObject } from '#wire';
import type { ErrorCode, GatewayError, PaymentRefusal } from '#errors';
import type { Seals } from '#security';
import { paidCaller, paymentOf, type Payments, type PaymentAttempt } from '#payments';
import { type Caller, ANONYMOUS_ACCOUNT } from '#accounts';
import type { UnpaidCall } from '#call';
import { formatUsd } from '#billing/amounts';
import type { A2aRequest } from './parse-request.ts';
import { ID_CHARS_MAX } from '../wire/read-send.ts';
import { taskTo03 } from '../wire/translate.ts';
import { X402 } from '../wire/protocol.ts';

/* The x402 extension for A2A: messages that carry a payment, and tasks that wait for one. */

const KEYS: readonly string[] = Object.values(X402);
const REJECTED = 'payment-rejected';

/** A message without its payment metadata, its caller, and the payment. */
interface PaidMessage extends Pick<A2aRequest, 'params' | 'paramsText'> {
  readonly caller: Caller;
  readonly payment: PaymentAttempt | null;
}

/**
 * Takes the payment out of a message, because it is for the gateway and not for the agent. A payment treats messages
 * that differ only in their ids as the same message. Throws GatewayError `invalid_request`, `service_unavailable`.
 */
export async function paidMessage(
  payments: Payments,
  caller: Caller,
  { service, params, paramsText }: Pick<A2aRequest, 'service' | 'params' | 'paramsText'>,
): Promise<PaidMessage> {
  const { message } = params;
  const metadata = isObject(message) ? message['metadata'] : undefined;
  if (!payments.open || !isObject(message) || !isObject(metadata) || !KEYS.some((key) => Object.hasOwn(metadata, key)))
    return { caller, payment: null, params, paramsText };
  const rest = Object.fromEntries(Object.entries(metadata).filter(([key]) => !KEYS.includes(key)));
  const plain: JsonObject = { ...message, metadata: rest };
  const stripped = { params: { ...params, message: plain }, paramsText: withoutPayment(paramsText) };
  const payload = metadata[X402.payload];
  if (payload === undefined || metadata[X402.status] === REJECTED) return { caller, payment: null, ...stripped };
  const { messageId: _id, ...same } = plain;
  const payment = paymentOf(payload, `message.metadata["${X402.payload}"]`, () =>
    hash('sha256', JSON.stringify([service, { ...params, message: same }])),
  );
  return { caller: await paidCaller(payments, caller, payment), payment, ...stripped };
}

function withoutPayment(text: string): string {
  const message = membersOf(text).get('message');
  const metadata = message && text[message.start] === '{' ? membersOf(text, message.start).get('metadata') : undefined;
  if (!metadata || text[metadata.start] !== '{') return text;
  const there = KEYS.filter((key) => membersOf(text, metadata.start).has(key));
  return splice(text, [withMembers(text, metadata, Object.fromEntries(there.map((key) => [key, null])))]);
}

/**
 * Tasks that wait for their client to pay. They exist at no agent. All their data is sealed in their ids, so the
 * gateway stores nothing.
 */
export interface PaymentTasks {
  /** The task that answers a message without enough money, as JSON text of a result of send in the client's version. */
  unpaid(
    details: {
      readonly ask: Pick<A2aRequest, 'caller' | 'payment' | 'version'>;
      readonly service: string;
      readonly contextId: string | null;
      /** The task that the message would continue; null for a new one. */
      readonly taskId: string | null;
    },
    refusal: UnpaidCall,
  ): Promise<string>;
  /**
   * The task that the unpaid message was sent to; null for a new one. undefined if the id is not that of an unpaid task
   * of this account.
   */
  goesOnWith(account: string, taskId: string): string | null | undefined;
}

const PREFIX = 'unpaid-';
/** The suffix of the messageId of the only message in such a task. */
const SUFFIX = '-1';

/**
 * Creates tasks of the x402 extension for A2A (v0.2): their state is `input-required`, and the metadata of their status
 * message holds the payment terms.
 */
export function createPaymentTasks({
  seals,
  now,
}: {
  readonly seals: Seals;
  readonly now: () => number;
}): PaymentTasks {
  return {
    async unpaid({ ask, service, contextId, taskId }, { error, amount, terms }) {
      const { caller, payment = null, version } = ask;
      const required = await terms({
        url: `a2a://agent/${encodeURIComponent(service)}`,
        description: `${service}, at most ${formatUsd(amount)} USDC a message`,
        mimeType: 'application/json',
      });
      // A new task of a caller without an account may be continued by any payer, because the wallet that will pay is
      // not yet known.
      const account = taskId === null && (caller.anonymous || caller.paying) ? ANONYMOUS_ACCOUNT : caller.account;
      const whole = `${PREFIX}${seals.seal(account, [taskId])}`;
      // The id of the agent's task may be too long to fit into this id. Then it is left out.
      const id = whole.length + SUFFIX.length <= ID_CHARS_MAX ? whole : `${PREFIX}${seals.seal(account, [null])}`;
      const context = contextId ?? id;
      const message = {
        messageId: `${id}${SUFFIX}`,
        contextId: context,
        taskId: id,
        role: 'ROLE_AGENT',
        parts: [{ text: required.error }],
        metadata: { ...standing(error, payment), [X402.required]: required },
      };
      const task = {
        id,
        contextId: context,
        status: { state: 'TASK_STATE_INPUT_REQUIRED', timestamp: new Date(now()).toISOString(), message },
      };
      return JSON.stringify(version === '1.0' ? { task } : taskTo03(task));
    },
    goesOnWith(account, taskId) {
      const text = taskId.startsWith(PREFIX) ? taskId.slice(PREFIX.length) : null;
      const sealed = text === null ? null : (seals.open(account, text) ?? seals.open(ANONYMOUS_ACCOUNT, text));
      return Array.isArray(sealed) ? (sealed[0] as string | null) : undefined;
    },
  };
}

/** Error codes of the extension (section 9.1). */
const FAILURES: Partial<Record<ErrorCode, string>> = {
  payment_expired: 'EXPIRED_PAYMENT',
  insufficient_payment: 'INVALID_AMOUNT',
  payment_verification_failed: 'INVALID_SIGNATURE',
} satisfies Record<PaymentRefusal, string>;

/** The state of the payment, as metadata: missing, too small or not valid. The client is asked for another payment. */
function standing({ code, message }: GatewayError, payment: A2aRequest['payment']): Readonly<Record<string, unknown>> {
  const failure = payment ? FAILURES[code] : undefined;
  if (payment && failure !== undefined) {
    const { network } = (payment.payload['accepted'] ?? {}) as { readonly network?: unknown };
    const failed = {
      success: false,
      errorReason: message,
      network: typeof network === 'string' ? network : '',
      transaction: '',
    };
    return { [X402.status]: 'payment-failed', [X402.error]: failure, [X402.receipts]: [failed] };
  }
  return { [X402.status]: 'payment-required', ...(payment?.receipt ? { [X402.receipts]: [payment.receipt] } : {}) };
}
