import { formatUsd, type GatewayError, type MicroUsd, type PaymentTerms, type Seals } from '#gateway';
import { ID_CHARS_MAX } from './wire/read-send.ts';
import type { A2aVersion } from './wire/version.ts';
import { taskTo03 } from './wire/translate-task.ts';

/** A task that there is for no agent: it waits for its client to pay. Its id says so itself, so that nothing is kept. */
export interface PaymentTasks {
  /** The task that a caller gets whose money does not reach, as the result of a send in the client's version, JSON text. */
  unpaid(
    of: {
      readonly account: string;
      readonly service: string;
      readonly contextId: string | null;
      /** The task that the message was to go on with; null for a new one. */
      readonly taskId: string | null;
    },
    error: GatewayError,
    amount: MicroUsd,
    version: A2aVersion,
  ): string;
  /** What the message went on with that such a task of this account stands for, null for a new one; undefined for an id that is of none. */
  goesOnWith(account: string, taskId: string): string | null | undefined;
}

const PREFIX = 'unpaid-';
/** Of the one message of such a task. */
const SUFFIX = '-1';

/** Tasks of the x402 extension for A2A (v0.2): `input-required`, with the terms in the metadata of its status message. */
export function createPaymentTasks({
  terms,
  seals,
  now,
}: {
  readonly terms: PaymentTerms;
  readonly seals: Seals;
  readonly now: () => number;
}): PaymentTasks {
  return {
    unpaid({ account, service, contextId, taskId }, error, amount, version) {
      const required = terms.required({
        error: error.message,
        resource: {
          url: `a2a://agent/${encodeURIComponent(service)}`,
          description: `${service}, at most ${formatUsd(amount)} USDC a message`,
          mimeType: 'application/json',
        },
        amount,
      });
      const whole = `${PREFIX}${seals.seal(account, [taskId])}`;
      // The longest ids do not fit into another.
      const id = whole.length + SUFFIX.length <= ID_CHARS_MAX ? whole : `${PREFIX}${seals.seal(account, [null])}`;
      const context = contextId ?? id;
      const message = {
        messageId: `${id}${SUFFIX}`,
        contextId: context,
        taskId: id,
        role: 'ROLE_AGENT',
        parts: [{ text: error.message }],
        metadata: { 'x402.payment.status': 'payment-required', 'x402.payment.required': required },
      };
      const task = {
        id,
        contextId: context,
        status: { state: 'TASK_STATE_INPUT_REQUIRED', timestamp: new Date(now()).toISOString(), message },
      };
      return JSON.stringify(version === '1.0' ? { task } : taskTo03(task));
    },
    goesOnWith(account, taskId) {
      const sealed = taskId.startsWith(PREFIX) ? seals.open(account, taskId.slice(PREFIX.length)) : null;
      return Array.isArray(sealed) ? (sealed[0] as string | null) : undefined;
    },
  };
}
