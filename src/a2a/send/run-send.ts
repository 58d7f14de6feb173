import { GatewayError } from '#errors';
import { isObject } from '#wire';
import type { CancelSignal, SettledFrame } from '#billing/amounts';
import {
  capCost,
  lowestCap,
  MAX_COST_HEADER,
  MAX_COST_META,
  refuseCapBeside,
  NO_PREFERENCES,
  spentOn,
  type Call,
  type CallRequest,
  type CostCap,
  openCall,
  type StartedProviderCall,
  type Pipeline,
} from '#call';
import { pinned, type Catalog } from '#catalog';
import { ownerOf, type Task } from '#tasks';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { ReplyWriter } from '../protocol/reply-writer.ts';
import { type A2aResult, type EventTexts, NO_RESULT, withLarge } from '../protocol/ending.ts';
import { lastInContext, isCovered, beganBy, keyOf, versionIn } from '../protocol/agent-tasks.ts';
import { costHeaders, withCost, withReceipt, withTaskCost } from '../protocol/metadata.ts';
import type { PaymentTasks } from '../protocol/x402.ts';
import type { Push } from '../push/create-push.ts';
import { resolveAgent } from '../agent/resolve.ts';
import { type Answered, type HandleMessage, taskAgain } from './handle-message.ts';
import { createSendAdapter, type SendAdapter } from './send-adapter.ts';
import type { SendAdapterDeps, SendRequest } from './sent-message.ts';
import { A2aError } from '../wire/errors.ts';
import { ID_CHARS_MAX, readSend, type SendParams } from '../wire/read-send.ts';
import { isTerminal } from '../wire/events.ts';

interface RunSendDeps extends SendAdapterDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly handleMessage: HandleMessage;
  readonly unpaid: PaymentTasks;
  readonly push: Pick<Push, 'check' | 'keep'>;
}

export type RunSend = (ask: A2aRequest, out: ReplyWriter, gone: AbortSignal) => Promise<void>;

/**
 * Sends a message to its agent and writes the reply. The message is sent once for each `messageId` of an account.
 * Throws an error only before anything was written.
 */
export function createRunSend(deps: RunSendDeps): RunSend {
  return async (request, out, gone) => {
    const fields = readSend(request.version, request.params);
    if (typeof fields === 'string')
      throw new A2aError('InvalidParams', fields, { param: /^[\w.[\]]+/.exec(fields)?.[0] });
    if (fields.pushConfig !== null) deps.push.check(request, fields.pushConfig);
    const { pushConfig } = fields;
    const { ask, taskId } = withoutUnpaid(deps, request, fields);
    const { service } = resolveAgent(deps.catalog, ask.service);
    const task = taskId === null ? null : await deps.tasks.find(keyOf(service, taskId), ownerOf(ask.caller));
    if (taskId !== null && task === null)
      throw new A2aError('TaskNotFound', 'Task not found', { metadata: { taskId } });
    await refuseForeignTasks(deps, ask, service, fields.referenceTaskIds);
    await deps.handleMessage(
      {
        ask,
        service,
        messageId: fields.messageId,
        contextId: fields.contextId ?? task?.contextId ?? null,
        taskId: task?.taskId ?? null,
        open: (callId, signal) => open(deps, { ask, fields, task, service, clientGone: gone }, callId, signal),
        write: (call) => write(deps, ask, call, out),
        ...(pushConfig === null
          ? {}
          : { repeated: (knownTask: string) => deps.push.keep(ask, service, knownTask, pushConfig) }),
      },
      out,
    );
  };
}

interface ParsedMessage {
  readonly ask: A2aRequest;
  readonly fields: SendParams;
  readonly task: Task | null;
  readonly service: string;
  readonly clientGone: AbortSignal;
}

interface StartedMessage extends StartedProviderCall<A2aResult, EventTexts> {
  readonly adapter: SendAdapter;
}

async function open(
  deps: RunSendDeps,
  { ask, fields, task, service, clientGone }: ParsedMessage,
  callId: string,
  gone: CancelSignal,
): Promise<StartedMessage> {
  const covered = isCovered(deps.catalog, task);
  const adapter = createSendAdapter(deps, {
    ...ask,
    taskId: task?.taskId ?? null,
    contextId: fields.contextId,
    begunIn: task === null ? null : versionIn(task.notes),
    later: task?.live === true,
    covered,
    waits: false,
    clientGone,
    ...pushOf(deps, ask, fields),
  });
  // The context exists at one provider only, so the message goes to the same offer.
  const last = await lastInContext(deps.tasks, ask.caller, service, fields.contextId);
  const request = toCallRequest(ask, fields, task, adapter, covered, last?.offerId ?? null);
  return { ...(await openCall(deps.pipeline, request, callId, gone)), adapter };
}

async function write(
  deps: RunSendDeps,
  ask: A2aRequest,
  { call, frames, adapter }: StartedMessage,
  out: ReplyWriter,
): Promise<Answered | null> {
  let begun = false;
  for await (const frame of frames) {
    if (frame.type === 'data')
      for (const { text } of frame.data.events) {
        const large = adapter.large.isIn(text) ? adapter.large : null;
        const priced = begun || call.free !== null ? text : withCost(text, call.id, null);
        const answerText = withLarge(begun ? priced : withReceipt(priced, ask.payment), large);
        await out.event(answerText, begun || call.free !== null ? undefined : costHeaders(call.id, null));
        large?.forget(text);
        begun = true;
      }
    if (frame.type !== 'settled') continue;
    await adapter.noted();
    const answered = await writeEnd(deps, ask, call, frame, out);
    // The task goes on even if the stream broke off, so a repeat of the message gets the task.
    return answered ?? (adapter.task() === null ? null : taskAgain(adapter.task()!, mayCost(call)));
  }
  return null;
}

async function writeEnd(
  { tasks }: RunSendDeps,
  ask: A2aRequest,
  call: Call,
  settled: SettledFrame<A2aResult>,
  out: ReplyWriter,
): Promise<Answered | null> {
  const { text, large, event, error, cut } = settled.result ?? NO_RESULT;
  if (error !== null) {
    await out.refused(error);
    return null;
  }
  const taskId = event?.taskId ?? null;
  if (cut !== null) await out.fail(new GatewayError('provider_unavailable', cut));
  if (text === null) {
    if (cut === null) await out.close();
    return null;
  }
  const over = event?.kind === 'message' || isTerminal(event?.state ?? null);
  const { payment, wantsReceipt } = ask;
  let answerText: string;
  if (call.free === null) answerText = withReceipt(withCost(text, call.id, over ? settled : null), payment);
  else {
    // The task's first message paid for this one too.
    const cost = over && taskId !== null ? await tasks.costOf(keyOf(call.service, taskId), beganBy) : null;
    answerText = withTaskCost(text, null, cost, wantsReceipt);
  }
  const whole = withLarge(answerText, large);
  const tell = () => out.result(whole, call.free === null ? costHeaders(call.id, over ? settled : null) : {});
  const charged = over ? spentOn(settled) > 0n : mayCost(call);
  if (event?.kind === 'task' || event?.kind === 'message')
    return { text: whole, taskId: event.kind === 'task' ? taskId : null, charged, over, tell };
  await tell();
  return taskId === null ? null : taskAgain(taskId, charged);
}

/** Whether the call can cost something, now or when its task ends. */
const mayCost = ({ candidates, lendable }: Call): boolean =>
  lendable > 0n || candidates.some(({ estimate }) => estimate > 0n);

/** Stores the client's webhook before any event of the task is sent to the client. */
function pushOf(
  { push }: RunSendDeps,
  ask: A2aRequest,
  { pushConfig }: SendParams,
): Pick<SendRequest, 'pushes' | 'onTask'> {
  if (pushConfig === null) return { pushes: false };
  return { pushes: true, onTask: ({ service, taskId }) => push.keep(ask, service, taskId, pushConfig) };
}

/**
 * If the message names a task that waits for a payment, restores the message that could not be sent before. The unpaid
 * task exists at no agent, so its id is removed.
 */
function withoutUnpaid(
  { unpaid }: RunSendDeps,
  ask: A2aRequest,
  { taskId }: SendParams,
): { readonly ask: A2aRequest; readonly taskId: string | null } {
  const goesOn = taskId === null ? undefined : unpaid.goesOnWith(ask.caller.account, taskId);
  if (goesOn === undefined) return { ask, taskId };
  const { message, ...rest } = ask.params;
  const { taskId: _unpaid, contextId, ...others } = message as Record<string, unknown>;
  const params = {
    message: {
      ...others,
      ...(goesOn === null ? {} : { taskId: goesOn }),
      // An unpaid task without a context used its own id as the context.
      ...(contextId === undefined || contextId === taskId ? {} : { contextId }),
    },
    ...rest,
  };
  return { ask: { ...ask, params, paramsText: JSON.stringify(params) }, taskId: goesOn };
}

/**
 * Throws A2aError `TaskNotFound` if a message refers to a task of another caller. The gateway checks it because the
 * agent does not know the owners of its tasks.
 */
async function refuseForeignTasks(
  { tasks }: RunSendDeps,
  { caller }: A2aRequest,
  service: string,
  ids: readonly string[],
): Promise<void> {
  const owner = ownerOf(caller);
  const matches = await Promise.all(
    [...new Set(ids)].map(async (id) => ({ id, task: await tasks.find(keyOf(service, id), owner) })),
  );
  const missing = matches.find(({ task }) => task === null);
  if (missing)
    throw new A2aError('TaskNotFound', 'Task not found', { metadata: { taskId: missing.id.slice(0, ID_CHARS_MAX) } });
}

function toCallRequest(
  ask: A2aRequest,
  fields: SendParams,
  task: Task | null,
  adapter: SendAdapter,
  covered: boolean,
  sticky: string | null,
): CallRequest<A2aResult, EventTexts> {
  const offerId = task?.offerId ?? sticky;
  const cap = capOf(ask);
  const request: CallRequest<A2aResult, EventTexts> = {
    primitive: 'agent',
    caller: ask.caller,
    requestId: ask.requestId,
    targets: [offerId === null ? ask.service : pinned(offerId)],
    preferences: NO_PREFERENCES,
    stickyKey: fields.contextId === null ? null : `${ask.caller.account} a2a ${fields.contextId}`,
    images: 0,
    stream: ask.operation === 'stream',
    adapter,
    free: covered ? 'message/send' : null,
    estimate: ({ priceCap }) => (priceCap !== null && !task?.live ? { costMax: priceCap } : { call: 1n }),
    facts: () => ({
      'a2a.protocol.version': ask.version,
      ...(ask.rpcId === null ? {} : { 'jsonrpc.request.id': ask.rpcId }),
      ...(fields.contextId === null ? {} : { 'a2a.context.id': fields.contextId }),
    }),
    metadata: null,
    traceparent: ask.traceparent,
    wantsReceipt: ask.wantsReceipt,
    ...(ask.payment ? { payment: ask.payment } : {}),
    ...(ask.quote ? { quote: ask.quote } : {}),
  };
  // A covered message costs nothing, so it needs no cap.
  return covered ? request : capCost(request, cap);
}

/**
 * The cap for the cost of the run: the lowest of the header, the metadata of the request and the metadata of the
 * message. Throws GatewayError `invalid_request`.
 */
export function capOf({ params, maxCost }: A2aRequest): CostCap | null {
  refuseCapBeside(params, 'metadata');
  const { metadata, message } = params;
  return lowestCap([
    [MAX_COST_META, saidIn(metadata)],
    [MAX_COST_META, isObject(message) ? saidIn(message['metadata']) : undefined],
    [MAX_COST_HEADER, maxCost],
  ]);
}

const saidIn = (metadata: unknown): unknown => (isObject(metadata) ? metadata[MAX_COST_META] : undefined);
