import { hash } from 'node:crypto';
import { GatewayError } from '#errors';
import {
  charsOf,
  isObject,
  type JsonObject,
  lengthOf,
  type MarkedText,
  NEVER_ABORTED,
  OWN_TURN_BYTES,
  ownTurn,
  piecesOfText,
  wholePiece,
} from '#wire';
import {
  idempotencyError,
  KEPT_BYTES_MAX,
  type StartedCall,
  type RepeatKey,
  handlePaidRequest,
  type PaidRequestDeps,
  type TakenKey,
  type ResponseRecord,
} from '#call';
import { paymentKey } from '#payments';
import type { KeptReplies } from '#files';
import { ownerOf, type Tasks } from '#tasks';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { ReplyWriter } from '../protocol/reply-writer.ts';
import type { PaymentTasks } from '../protocol/x402.ts';
import { keyOf } from '../protocol/agent-tasks.ts';
import { A2aError } from '../wire/errors.ts';
import { readEvent } from '../wire/events.ts';

interface HandleMessageDeps {
  readonly paid: PaidRequestDeps;
  readonly tasks: Pick<Tasks, 'ofCall' | 'find'>;
  readonly unpaid: PaymentTasks;
  readonly largeReplies?: KeptReplies;
  readonly onError: (error: unknown) => void;
  /** Writes the present state of a task, as the answer to a repeat of its message. */
  readonly show: (ask: A2aRequest, taskId: string, out: ReplyWriter) => Promise<void>;
}

interface PendingMessage<O extends StartedCall> {
  readonly ask: A2aRequest;
  readonly service: string;
  readonly messageId: string;
  /** The context and the task in which a refused message waits for its payment; null for new ones. */
  readonly contextId: string | null;
  readonly taskId: string | null;
  /** Prepares the call. Rejects with GatewayError. */
  open(callId: string, gone: AbortSignal): Promise<O>;
  /** Called with the task that a repeat of the message is shown, before it is shown. Default: nothing. */
  repeated?(taskId: string): Promise<void>;
  /** Writes the answer. Resolves with the answer for repeats, or null if a repeat is executed again. */
  write(call: O): Promise<Answered | null>;
}

/**
 * Sends a message once, even if the client repeats it, and writes its answer. Throws an error only before anything was
 * written.
 */
export type HandleMessage = <O extends StartedCall>(message: PendingMessage<O>, out: ReplyWriter) => Promise<void>;

const AGAIN = 'tollgate/task';

/** The end of an answer, and the data from which repeats of the message are answered. */
export interface Answered {
  /** The result, which repeats get unchanged. null: repeats get the task in its present state. */
  readonly text: string | MarkedText | null;
  /** The task that repeats get if the text is too long to be kept. null: the result is a message. */
  readonly taskId: string | null;
  readonly charged: boolean;
  /** The result is final. If it is too large for the database, it is kept as a file. */
  readonly over: boolean;
  /** Writes the end of the answer. Absent if the end is already written. */
  readonly tell?: () => Promise<void>;
}

/** An answer whose repeats get the task in its present state. The last event of a stream would not be a full answer. */
export const taskAgain = (taskId: string, charged: boolean): Answered => ({
  text: null,
  taskId,
  charged,
  over: false,
});

const WRITTEN = async () => {};

const record = (body: Uint8Array | null, charged: boolean): ResponseRecord => ({
  storedReply: () => ({ status: 200, headers: {}, body }),
  charged,
});

/** How many tasks one messageId can begin with the same words. Each earlier task costs one lookup. */
const BEGUN_MAX = 100;

export function createHandleMessage(deps: HandleMessageDeps): HandleMessage {
  const { paid, tasks, unpaid, show, largeReplies, onError } = deps;
  return ({ ask, service, messageId, contextId, taskId, open, write, repeated = WRITTEN }, out) =>
    handlePaidRequest(paid, {
      caller: ask.caller,
      repeats: ask.caller.anonymous ? null : repeatsOf(ask, service, messageId, repeated, out),
      // A client that disconnects does not cancel its task.
      gone: NEVER_ABORTED,
      open,
      async write(call, isKept) {
        const answered = await write(call);
        if (answered && isKept) return keep(ask, call.id, answered, out);
        await answered?.tell?.();
        return null;
      },
      replay: ({ body }) => repeat(ask, Buffer.from(body).toString(), repeated, out),
      async refuse(refusal) {
        await out.result(await unpaid.unpaid({ ask, service, contextId, taskId }, refusal));
        return null;
      },
      isOwnError: (error) => error instanceof A2aError,
    });

  /** Writes the end of the answer. Resolves with the data to keep for repeats. */
  async function keep(
    { caller }: A2aRequest,
    callId: string,
    answered: Answered,
    out: ReplyWriter,
  ): Promise<ResponseRecord> {
    const { text, taskId, charged, over, tell = WRITTEN } = answered;
    const taskRecord = () => record(taskId === null ? null : Buffer.from(JSON.stringify({ [AGAIN]: taskId })), charged);
    const isLarge = text !== null && charsOf(text) > OWN_TURN_BYTES;
    // It was just written to the client, in this turn.
    if (isLarge) await ownTurn();
    const pieces = text === null ? null : piecesOfText(text);
    if (text !== null && pieces !== null && charged && over && largeReplies?.takes(lengthOf(pieces))) {
      const inForm = out.form === 'result' ? pieces : piecesOfText(out.formed(text));
      const isKept = await largeReplies
        .keep(caller.account, callId, { status: 200, headers: {} }, inForm, out.form)
        .catch(onError);
      // The end goes out only after the file is written. Otherwise a client could repeat the message before its file
      // exists.
      return { ...(isKept === true ? record(null, charged) : taskRecord()), end: () => void tell().catch(onError) };
    }
    if (isLarge) await ownTurn();
    await tell();
    const whole = pieces && wholePiece(pieces, KEPT_BYTES_MAX[charged ? 'charged' : 'free']);
    return whole === null ? taskRecord() : record(whole, charged);
  }

  /** Answers a repeat with the file of a large result. False if no file is kept in the form of this binding. */
  async function repeatLarge({ caller }: A2aRequest, key: TakenKey, out: ReplyWriter): Promise<boolean> {
    const reply = await largeReplies?.find(caller.account, key, out.form);
    const body = reply ? out.body() : null;
    if (body === null) return false;
    await reply!.writeTo(body.client, body.around);
    return true;
  }

  /**
   * The key of a message consists of its account, service, `messageId`, `taskId`, `contextId` and content, because a
   * client may use a messageId again for other words. A message that is paid in place has its payment as key.
   */
  function repeatsOf(
    ask: A2aRequest,
    service: string,
    messageId: string,
    repeated: (taskId: string) => Promise<void>,
    out: ReplyWriter,
  ): RepeatKey {
    const { caller } = ask;
    const { identity, bodyHash } = identityOf(ask, messageId);
    /** Tasks that the same message began before, and that its sender answered or canceled. */
    const before: string[] = [];
    // Gateways of earlier versions stored the caller's run where null is.
    const key = () => `a2a ${hash('sha256', JSON.stringify([service, null, identity, ...before])).slice(0, 40)}`;
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
      async takeKey(takenKey) {
        const callId = takenKey.kind === 'conflict' ? null : takenKey.callId;
        const task = callId === null ? null : await tasks.ofCall(callId, ownerOf(caller));
        if (task !== null) await repeated(task.taskId);
        if (await repeatLarge(ask, takenKey, out)) return;
        // The answer can be missing because its gateway died, or because newer answers displaced it. A task that the
        // message began can still be shown.
        if (task === null) throw repeatError(takenKey.kind);
        await show(ask, task.taskId, out);
      },
    };
  }

  async function repeat(
    ask: A2aRequest,
    text: string,
    repeated: (taskId: string) => Promise<void>,
    out: ReplyWriter,
  ): Promise<void> {
    const reply: unknown = JSON.parse(text);
    const again = isObject(reply) ? reply[AGAIN] : undefined;
    const event = typeof again === 'string' ? null : readEvent(ask.version, reply);
    const taskId = typeof again === 'string' ? again : event?.kind === 'task' ? event.taskId : null;
    if (taskId !== null) await repeated(taskId);
    await (typeof again === 'string' ? show(ask, again, out) : out.result(text));
  }

  /**
   * The task id of an answer that asked for input, if the sender has since answered or canceled that task. Such a
   * sender has seen the answer, so its message is new and not a retry. null for every other answer.
   */
  async function answeredTask(
    { version, caller, params }: A2aRequest,
    service: string,
    text: string,
  ): Promise<string | null> {
    if (taskIdOf(params['message']) !== null) return null;
    const reply: unknown = JSON.parse(text);
    if (isObject(reply) && Object.hasOwn(reply, AGAIN)) return null;
    const event = readEvent(version, reply);
    if (event?.kind !== 'task' || event.taskId === null || event.state !== 'input-required') return null;
    const task = await tasks.find(keyOf(service, event.taskId), ownerOf(caller));
    return task !== null && task.state !== 'input-required' ? task.taskId : null;
  }
}

/** The members that identify a message, and the digest that a repeat must match. */
function identityOf(
  { caller, payment, version, params }: A2aRequest,
  messageId: string,
): { readonly identity: unknown; readonly bodyHash: string } {
  const { message } = params;
  const { metadata: _metadata, ...content } = message as JsonObject;
  const words = hash('sha256', JSON.stringify([version, content]));
  if (caller.paying && payment)
    return { identity: paymentKey(payment), bodyHash: hash('sha256', JSON.stringify([version, payment.request])) };
  return { identity: [messageId, taskIdOf(message), idIn(message, 'contextId'), words], bodyHash: words };
}

const taskIdOf = (message: unknown): string | null => idIn(message, 'taskId');

function idIn(message: unknown, name: string): string | null {
  const id = isObject(message) ? message[name] : undefined;
  return typeof id === 'string' && id !== '' ? id : null;
}

function repeatError(kind: TakenKey['kind']): GatewayError {
  const { code, retryAfterS } = idempotencyError(kind);
  const text = {
    conflict: 'This payment was already used for another message. Make a new payment',
    running: 'The message with this messageId is still being answered. Read its task, or send the message again later',
    unkept:
      'The answer to this message is not stored, because it was too long or newer answers replaced it. To run the message again, send it with a new messageId',
    lost: 'This message was charged once, but has no answer that could be repeated: its agent answered with an error after it had made calls, or its gateway stopped. To run it again, send it with a new messageId',
  }[kind];
  return new GatewayError(code, text, {
    param: kind === 'conflict' ? 'message' : 'message.messageId',
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  });
}
