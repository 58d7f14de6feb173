import { hash } from 'node:crypto';
import { GatewayError, isObject, type JsonObject } from '#wire';
import { type Idempotency, idempotencyError, KEPT_BYTES_MAX, newCallId, paymentKey } from '#gateway';
import { ownerOf, type Tasks } from '#tasks';
import type { Ask } from '../door/ask.ts';
import type { ReplyWriter } from '../door/reply-writer.ts';
import { keyOf } from '../tasks/tasks-of-agents.ts';
import { readEvent } from '../wire/read-result.ts';

export interface OnceDeps {
  readonly idempotency: Idempotency;
  readonly tasks: Pick<Tasks, 'ofCall' | 'find'>;
  /** Shows a task as it is now: the outcome of a message that was sent before. */
  readonly show: (ask: Ask, taskId: string, out: ReplyWriter) => Promise<void>;
}

/**
 * Sends a message once, however often it is repeated: `run` takes it to its end, and resolves with what is kept of
 * its outcome (of `keptText` or `keptTask`), or null.
 */
export type Once = (
  ask: Ask,
  service: string,
  messageId: string,
  out: ReplyWriter,
  run: (callId: string) => Promise<Kept | null>,
) => Promise<void>;

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
export const keptTask = (taskId: string, charged: boolean): Kept => ({
  text: JSON.stringify({ [AGAIN]: taskId }),
  charged,
});

/**
 * One messageId begins at most so many tasks with the same words, one after the other. Each of them is looked up
 * before the next.
 */
const BEGUN_MAX = 100;

/**
 * A message is told from others by its account, service, `messageId`, `taskId` and `contextId`; one that begins a
 * task also by what it says, as nothing but the messageId would make two of them one. Of a message that is paid for
 * by itself it is the payment. Who comes without an account has nothing that could be repeated.
 */
export function createOnce({ idempotency, tasks, show }: OnceDeps): Once {
  return async (ask, service, messageId, out, run) => {
    const { caller } = ask;
    if (caller.anonymous) {
      await run(newCallId());
      return;
    }
    const { named, bodyHash } = identityOf(ask, messageId);
    /** Tasks that the same message has begun, and that its sender has gone on with. */
    const before: string[] = [];
    for (;;) {
      const use = {
        account: caller.account,
        key: `a2a ${hash('sha256', JSON.stringify([service, caller.run?.parent ?? null, named, ...before])).slice(0, 40)}`,
        callId: newCallId(),
        bodyHash,
        allowedServices: caller.key?.allowedServices ?? null,
      };
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const beginning = await idempotency.begin(use);
      if (beginning.kind === 'replay') {
        const text = Buffer.from(beginning.body).toString();
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        const answered = before.length < BEGUN_MAX ? await answeredTask(ask, service, text) : null;
        if (answered === null) return repeat(ask, text, out);
        before.push(answered);
        continue;
      }
      if (beginning.kind === 'conflict') throw repeated('conflict');
      if (beginning.kind !== 'new') {
        // Its gateway may have died, or its answer have made room for others: a task that the message began is
        // there to be shown all the same.
        // oxlint-disable-next-line no-await-in-loop -- the last of them
        const task = beginning.callId === null ? null : await tasks.ofCall(beginning.callId, ownerOf(caller));
        if (task === null) throw repeated(beginning.kind);
        return show(ask, task.taskId, out);
      }
      return doOnce(use, run);
    }
  };

  function repeat(ask: Ask, text: string, out: ReplyWriter): Promise<void> {
    const kept: unknown = JSON.parse(text);
    const taskId = isObject(kept) ? kept[AGAIN] : undefined;
    return typeof taskId === 'string' ? show(ask, taskId, out) : out.result(text);
  }

  /**
   * The task that an answer began with a question, where its sender has answered that since, or canceled it:
   * whoever has done so has had the answer, and what comes now is no repeat of a request whose answer was lost.
   * null for every other answer.
   */
  async function answeredTask({ version, caller, params }: Ask, service: string, text: string): Promise<string | null> {
    if (taskIdOf(params['message']) !== null) return null;
    const kept: unknown = JSON.parse(text);
    if (isObject(kept) && Object.hasOwn(kept, AGAIN)) return null;
    const event = readEvent(version, kept);
    if (event?.kind !== 'task' || event.taskId === null || event.state !== 'input-required') return null;
    const task = await tasks.find(keyOf(service, event.taskId), ownerOf(caller));
    return task !== null && task.state !== 'input-required' ? task.taskId : null;
  }

  async function doOnce(
    use: Parameters<Idempotency['begin']>[0],
    run: (callId: string) => Promise<Kept | null>,
  ): Promise<void> {
    let kept: Kept | null;
    try {
      kept = await run(use.callId);
    } catch (error) {
      await idempotency.abandon(use);
      throw error;
    }
    if (kept === null) await idempotency.abandon(use);
    else await idempotency.finish(use, { status: 200, headers: {}, body: Buffer.from(kept.text) }, kept.charged);
  }
}

/** What a message is known by when it comes again, and what it must say then. */
function identityOf(
  { caller, payment, version, params }: Ask,
  messageId: string,
): { readonly named: unknown; readonly bodyHash: string } {
  const { message } = params;
  const { metadata: _metadata, ...said } = message as JsonObject;
  const words = hash('sha256', JSON.stringify([version, said]));
  if (caller.paying && payment)
    return { named: paymentKey(payment), bodyHash: hash('sha256', JSON.stringify([version, payment.request])) };
  const taskId = taskIdOf(message);
  return { named: [messageId, taskId, idIn(message, 'contextId'), taskId === null ? words : null], bodyHash: words };
}

const taskIdOf = (message: unknown): string | null => idIn(message, 'taskId');

function idIn(message: unknown, name: string): string | null {
  const id = isObject(message) ? message[name] : undefined;
  return typeof id === 'string' && id !== '' ? id : null;
}

function repeated(kind: 'conflict' | 'running' | 'lost' | 'unkept'): GatewayError {
  const { code, retryAfterS } = idempotencyError(kind);
  const said = {
    conflict:
      'A message with this messageId was sent to this task before, and said something else: a new message has a new messageId',
    running: 'The message with this messageId is still being answered: ask for its task, or send it again later',
    unkept:
      'The message with this messageId was answered, and its answer was too long to be kept, or newer ones took its place: send it with a new messageId to have it done again',
    lost: 'The message with this messageId was charged once, but its answer was lost: send it with a new messageId to have it done again',
  }[kind];
  return new GatewayError(code, said, {
    param: 'message.messageId',
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  });
}
