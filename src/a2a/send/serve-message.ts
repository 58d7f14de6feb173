import { hash } from 'node:crypto';
import {
  GatewayError,
  isObject,
  type JsonObject,
  lengthOf,
  type MarkedText,
  NEVER_ABORTED,
  piecesOfText,
  wholePiece,
} from '#wire';
import {
  idempotencyError,
  KEPT_BYTES_MAX,
  type Opened,
  paymentKey,
  type RepeatKey,
  type Serve,
  type TakenKey,
  type Written,
} from '#gateway';
import { type KeptReplies, ownerOf, type Tasks } from '#tasks';
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
  /** Keeps results that are too large for the database. Default: they are not kept. */
  readonly largeReplies?: KeptReplies;
  /** Told why one could not be kept. */
  readonly onError: (error: unknown) => void;
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
  /** Writes the answer. Resolves with what a repeat is answered; null where it is done again. */
  write(opened: O): Promise<Answered | null>;
}

/**
 * Sends a message once, however often it is repeated, and writes its answer. Throws what is wrong before anything
 * was written.
 */
export type ServeMessage = <O extends Opened>(asked: MessageAsked<O>, out: ReplyWriter) => Promise<void>;

const AGAIN = 'tollgate/task';

/** The end of an answer, and the answer to a repeat of its message. */
export interface Answered {
  /** The result, which is repeated as it was. null: the task is shown as it is by then. */
  readonly text: string | MarkedText | null;
  /** It is shown where the text is too long to be kept. null: the result is a message. */
  readonly taskId: string | null;
  readonly charged: boolean;
  /** Nothing changes of the result any more: it is kept as a file where it is too large for the database. */
  readonly over: boolean;
  /** Writes the end of the answer. Absent where it is written. */
  readonly tell?: () => Promise<void>;
}

/** A repeat shows the task as it is by then: the last event of a stream alone would be no answer. */
export const taskAgain = (taskId: string, charged: boolean): Answered => ({
  text: null,
  taskId,
  charged,
  over: false,
});

const WRITTEN = async () => {};

const kept = (body: Uint8Array | null, charged: boolean): Written => ({
  kept: () => ({ status: 200, headers: {}, body }),
  charged,
});

/**
 * One messageId begins at most so many tasks with the same words, one after the other. Each of them is looked up
 * before the next.
 */
const BEGUN_MAX = 100;

export function createServeMessage(deps: ServeMessageDeps): ServeMessage {
  const { serve, tasks, unpaid, show, largeReplies, onError } = deps;
  return ({ ask, service, messageId, contextId, taskId, open, write }, out) =>
    serve({
      caller: ask.caller,
      repeats: ask.caller.anonymous ? null : repeatsOf(ask, service, messageId, out),
      // Leaving never cancels a task.
      gone: NEVER_ABORTED,
      open,
      async write(opened, isKept) {
        const answered = await write(opened);
        if (answered && isKept) return keep(ask, opened.id, answered, out);
        await answered?.tell?.();
        return null;
      },
      replay: ({ body }) => repeat(ask, Buffer.from(body).toString(), out),
      async refuse(refusal) {
        await out.result(await unpaid.unpaid({ ask, service, contextId, taskId }, refusal));
        return null;
      },
      isOwnError: (error) => error instanceof A2aError,
    });

  /** Writes the end of the answer, and tells what is kept. */
  async function keep({ caller }: Ask, callId: string, answered: Answered, out: ReplyWriter): Promise<Written> {
    const { text, taskId, charged, over, tell = WRITTEN } = answered;
    const shown = () => kept(taskId === null ? null : Buffer.from(JSON.stringify({ [AGAIN]: taskId })), charged);
    const pieces = text === null ? null : piecesOfText(text);
    if (text !== null && pieces !== null && charged && over && largeReplies?.takes(lengthOf(pieces))) {
      const inForm = out.form === 'result' ? pieces : piecesOfText(out.formed(text));
      const isKept = await largeReplies
        .keep(caller.account, callId, { status: 200, headers: {} }, inForm, out.form)
        .catch(onError);
      // The file takes its time: a client that had the end of the answer before could repeat it too soon.
      return { ...(isKept === true ? kept(null, charged) : shown()), end: () => void tell().catch(onError) };
    }
    await tell();
    const whole = pieces && wholePiece(pieces, KEPT_BYTES_MAX[charged ? 'charged' : 'free']);
    return whole === null ? shown() : kept(whole, charged);
  }

  /** Gives a repeat the file of a large result. False where none is kept in the form that its binding has. */
  async function repeatLarge({ caller }: Ask, by: TakenKey, out: ReplyWriter): Promise<boolean> {
    const reply = await largeReplies?.find(caller.account, by, out.form);
    const body = reply ? out.body() : null;
    if (body === null) return false;
    await reply!.writeTo(body.client, body.around);
    return true;
  }

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
        if (await repeatLarge(ask, by, out)) return;
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
