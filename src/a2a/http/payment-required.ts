import type { ErrorCode, GatewayError, Seals } from '#wire';
import { formatUsd } from '#billing/amounts';
import { ANONYMOUS_ACCOUNT, type Refusal } from '#gateway';
import type { A2aRequest } from './a2a-request.ts';
import { X402 } from './paid-message.ts';
import { ID_CHARS_MAX } from '../wire/read-send.ts';
import { taskTo03 } from '../wire/translate.ts';

/**
 * Tasks that wait for their client to pay. They exist at no agent. All their data is sealed in their ids, so the
 * gateway stores nothing.
 */
export interface PaymentTasks {
  /** The task that answers a message without enough money, as JSON text of a result of send in the client's version. */
  unpaid(
    of: {
      readonly ask: Pick<A2aRequest, 'caller' | 'payment' | 'version'>;
      readonly service: string;
      readonly contextId: string | null;
      /** The task that the message would continue; null for a new one. */
      readonly taskId: string | null;
    },
    refusal: Refusal,
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
};

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
