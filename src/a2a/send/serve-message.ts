import { hash } from 'node:crypto';
import { bytesOfText, GatewayError, isObject, type JsonObject, type MarkedText, NEVER_ABORTED } from '#wire';
import {
  type GivenReply,
  idempotencyError,
  KEPT_BYTES_MAX,
  type Opened,
  paymentKey,
  type RepeatKey,
  type Serve,
  type TakenKey,
  type Written,
} from '#gateway';
import { ownerOf, type Tasks } from '#tasks';
import type { Ask } from '../door/ask.ts';
import type { ReplyWriter } from '../door/reply-writer.ts';
import type { PaymentTasks } from '../door/payment-required.ts';
import { keyOf } from '../tasks/tasks-of-agents.ts';
import { A2aError } from '../wire/a2a-error.ts';
import { readEvent } from '../wire/read-result.ts';

interface ServeMessageDeps {
  readonly serve: Serve;
  readonly tasks: Pick<Tasks, 'ofCall' | 'find'>;
  readonly unpaid: PaymentTasks;
  /** Shows a task as it is now: the outcome of a message that was sent before. */
  readonly show: (ask: Ask, taskId: string, out: ReplyWriter) => Promise<void>;
}

/** A message that is answered by a call. */
interface MessageAsked<O extends Opened> {
  readonly ask: Ask;
  readonly service: string;
  readonly messageId: string;
  /** The context and the task that a refused message waits in for its payment; null for new ones. */
  readonly contextId: string | null;
  readonly taskId: string | null;
  /** Prepares the call. Rejects with GatewayError. */
  open(callId: string, gone: AbortSignal): Promise<O>;
  /** Writes the answer. Returns what is kept of it (keptText, keptTask); null for nothing. */
  write(opened: O): Promise<Written | null>;
}

/**
 * Sends a message once, however often it is repeated, and writes its answer. Throws what is wrong before anything
 * was written.
 */
export type ServeMessage = <O extends Opened>(asked: MessageAsked<O>, out: ReplyWriter) => Promise<void>;

const AGAIN = 'tollgate/task';

const kept = (text: string | MarkedText, charged: boolean): Written => ({
  kept: (): GivenReply => ({ status: 200, headers: {}, body: bytesOfText(text, KEPT_BYTES_MAX.charged) }),
  charged,
});

/** A result that is repeated as it was. A result that is too long for that is shown by its task, if it has one. */
export function keptText(text: string | MarkedText, taskId: string | null, charged: boolean): Written {
  if (taskId === null) return kept(text, charged);
  const bytesMax = KEPT_BYTES_MAX[charged ? 'charged' : 'free'];
  const bytes = bytesOfText(text, bytesMax);
  return bytes !== null && bytes.byteLength <= bytesMax ? kept(text, charged) : keptTask(taskId, charged);
}

/** A repeat shows the task as it is by then: the last event of a stream alone would be no answer. */
export const keptTask = (taskId: string, charged: boolean): Written =>
  kept(JSON.stringify({ [AGAIN]: taskId }), charged);

/**
 * One messageId begins at most so many tasks with the same words, one after the other. Each of them is looked up
 * before the next.
 */
const BEGUN_MAX = 100;

export function createServeMessage({ serve, tasks, unpaid, show }: ServeMessageDeps): ServeMessage {
  return ({ ask, service, messageId, contextId, taskId, open, write }, out) =>
    serve({
      caller: ask.caller,
      repeats: ask.caller.anonymous ? null : repeatsOf(ask, service, messageId, out),
      // Leaving never cancels a task.
      gone: NEVER_ABORTED,
      open,
      write,
      replay: ({ body }) => repeat(ask, Buffer.from(body).toString(), out),
      async refuse(refusal) {
        await out.result(await unpaid.unpaid({ ask, service, contextId, taskId }, refusal));
        return null;
      },
      isOwnError: (error) => error instanceof A2aError,
    });

  /**
   * A message is told from others by its account, service, `messageId`, `taskId` and `contextId`. A message that
   * begins a task is also told by what it says, as the messageId alone would make two of them one. A message that
   * is paid for in place is told by its payment.
   */
  function repeatsOf(ask: Ask, service: string, messageId: string, out: ReplyWriter): RepeatKey {
    const { caller } = ask;
    const { named, bodyHash } = identityOf(ask, messageId);
    /** Tasks that the same message has begun and that its sender has gone on with. */
    const before: string[] = [];
    const key = () =>
      `a2a ${hash('sha256', JSON.stringify([service, ownerOf(caller).within, named, ...before])).slice(0, 40)}`;
    return {
      key: key(),
      bodyHash,
      async nextKey({ body }) {
        if (before.length >= BEGUN_MAX) return null;
        const answered = await answeredTask(ask, service, Buffer.from(body).toString());
        if (answered === null) return null;
        before.push(answered);
        return key();
      },
      async taken(by) {
        // Its gateway may have died, or its answer have made room for others: a task that the message began can
        // still be shown.
        const callId = by.kind === 'conflict' ? null : by.callId;
        const task = callId === null ? null : await tasks.ofCall(callId, ownerOf(caller));
        if (task === null) throw repeated(by.kind);
        await show(ask, task.taskId, out);
      },
    };
  }

  function repeat(ask: Ask, text: string, out: ReplyWriter): Promise<void> {
    const reply: unknown = JSON.parse(text);
    const taskId = isObject(reply) ? reply[AGAIN] : undefined;
    return typeof taskId === 'string' ? show(ask, taskId, out) : out.result(text);
  }

  /**
   * The task that an answer began with a question, where its sender has answered that since, or canceled it: such a
   * sender has had the answer, so the message is no repeat of a request whose answer was lost. null for every other
   * answer.
   */
  async function answeredTask({ version, caller, params }: Ask, service: string, text: string): Promise<string | null> {
    if (taskIdOf(params['message']) !== null) return null;
    const reply: unknown = JSON.parse(text);
    if (isObject(reply) && Object.hasOwn(reply, AGAIN)) return null;
    const event = readEvent(version, reply);
    if (event?.kind !== 'task' || event.taskId === null || event.state !== 'input-required') return null;
    const task = await tasks.find(keyOf(service, event.taskId), ownerOf(caller));
    return task !== null && task.state !== 'input-required' ? task.taskId : null;
  }
}

/** How a message is recognised when it comes again, and the digest of what it must say then. */
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

function repeated(kind: TakenKey['kind']): GatewayError {
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
