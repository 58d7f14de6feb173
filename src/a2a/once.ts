import { hash } from 'node:crypto';
import { GatewayError, type Idempotency, idempotencyError, isObject, KEPT_BYTES_MAX, newCallId, ownerOf, paymentKey, type Tasks } from '#gateway';
import type { Ask, Out } from './ask.ts';

export interface OnceDeps {
  readonly idempotency: Idempotency;
  readonly tasks: Pick<Tasks, 'ofCall'>;
  /** Shows a task as it is now: the outcome of a message that was sent before. */
  readonly show: (ask: Ask, taskId: string, out: Out) => Promise<void>;
}

/** Sends a message once, whoever repeats it: `run` takes it to its end, and resolves with what is kept of its outcome (of `keptText` or `keptTask`), or null. */
export type Once = (ask: Ask, service: string, messageId: string, out: Out, run: (callId: string) => Promise<Kept | null>) => Promise<void>;

export interface Kept {
  readonly text: string;
  /** The message was charged for, or will be: it must not be sent again. */
  readonly charged: boolean;
}

const AGAIN = 'tollgate/task';

/** A result that is repeated as it was. One that is too long for that is shown by its task, where it has one. */
export function keptText(text: string, taskId: string | null, charged: boolean): Kept {
  const isShort = Buffer.byteLength(text) <= KEPT_BYTES_MAX[charged ? 'charged' : 'free'];
  return isShort || taskId === null ? { text, charged } : keptTask(taskId, charged);
}
/** A task that is shown as it is by then: of a stream the last event alone would be no answer. */
export const keptTask = (taskId: string, charged: boolean): Kept => ({ text: JSON.stringify({ [AGAIN]: taskId }), charged });

/**
 * `messageId` is the idempotency key of A2A, for each account and service; of a message that is paid for by itself it is the payment. Who comes without an
 * account has nothing that could be repeated.
 */
export function createOnce({ idempotency, tasks, show }: OnceDeps): Once {
  return async (ask, service, messageId, out, run) => {
    const { caller, payment, version, params } = ask;
    if (caller.anonymous) {
      await run(newCallId());
      return;
    }
    const paid = caller.paying && payment ? { key: paymentKey(payment), said: payment.request } : null;
    const use = {
      account: caller.account,
      key: `a2a ${hash('sha256', JSON.stringify([service, caller.run?.parent ?? null, paid?.key ?? messageId])).slice(0, 40)}`,
      callId: newCallId(),
      bodyHash: hash('sha256', JSON.stringify([version, paid?.said ?? params['message']])),
      allowedServices: caller.key?.allowedServices ?? null,
    };
    const beginning = await idempotency.begin(use);
    if (beginning.kind === 'replay') {
      const text = Buffer.from(beginning.body).toString();
      const kept: unknown = JSON.parse(text);
      const taskId = isObject(kept) ? kept[AGAIN] : undefined;
      return typeof taskId === 'string' ? show(ask, taskId, out) : out.result(text);
    }
    if (beginning.kind === 'conflict') throw repeated('conflict');
    if (beginning.kind !== 'new') {
      // Its gateway may have died, or its answer have made room for others: a task that the message began is there to be shown all the same.
      const task = beginning.callId === null ? null : await tasks.ofCall(beginning.callId, ownerOf(caller));
      if (task === null) throw repeated(beginning.kind);
      return show(ask, task.taskId, out);
    }
    let kept: Kept | null;
    try {
      kept = await run(use.callId);
    } catch (error) {
      await idempotency.abandon(use);
      throw error;
    }
    if (kept === null) await idempotency.abandon(use);
    else await idempotency.finish(use, { status: 200, headers: {}, body: Buffer.from(kept.text) }, kept.charged);
  };
}

function repeated(kind: 'conflict' | 'running' | 'lost' | 'unkept'): GatewayError {
  const { code, retryAfterS } = idempotencyError(kind);
  const said = {
    conflict: 'A message with this messageId was sent before, and said something else: a new message has a new messageId',
    running: 'The message with this messageId is still being answered: ask for its task, or send it again later',
    unkept:
      'The message with this messageId was answered, and its answer was too long to be kept, or newer ones took its place: send it with a new messageId to have it done again',
    lost: 'The message with this messageId was charged once, but its answer was lost: send it with a new messageId to have it done again',
  }[kind];
  return new GatewayError(code, said, { param: 'message.messageId', ...(retryAfterS === undefined ? {} : { retryAfterS }) });
}
