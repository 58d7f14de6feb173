import { randomUUID } from 'node:crypto';
import { GatewayError } from '#errors';
import { type JsonObject, LargeStrings, wholePiece } from '#wire';
import { capCost, KEPT_BYTES_MAX, spentOn, openCall, type StartedProviderCall, type Pipeline } from '#call';
import {
  type CallEvent,
  type ContentResult,
  contentResultOf,
  type EventBatch,
  largePart,
  type Part,
  partOf,
  type TargetAdapter,
  type TargetRequest,
  textOf,
} from '#bridge';
import { toGatewayError } from '#http';
import { ownerOf, type Tasks } from '#tasks';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { ReplyWriter } from '../protocol/reply-writer.ts';
import { costHeaders, withCost, withReceipt } from '../protocol/metadata.ts';
import { fromA2aParts, toA2aPart } from './parts.ts';
import { capOf } from '../send/run-send.ts';
import { type Answered, type HandleMessage, taskAgain } from '../send/handle-message.ts';
import { BRIDGED, keyOf } from '../protocol/agent-tasks.ts';
import { exactValue } from '../wire/edit-json.ts';
import { A2aError } from '../wire/errors.ts';
import { readSend } from '../wire/read-send.ts';
import { translateEvent, translateParams } from '../wire/translate.ts';

interface BridgedDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly tasks: Tasks;
  readonly handleMessage: HandleMessage;
  readonly taskTtlMs: number;
  readonly now: () => number;
}

/**
 * A model or a tool that is called as an agent. `service`: the name as the client wrote it, such as `model/gpt-mini`.
 */
export interface Bridge {
  readonly service: string;
  readonly target: TargetAdapter;
  readonly name: string;
}

/**
 * Answers a message to a model or a tool that is called as an agent. A send is answered with a message. A stream is
 * answered with a task whose only artifact grows.
 */
export async function runBridged(
  deps: BridgedDeps,
  { service, target, name }: Bridge,
  ask: A2aRequest,
  out: ReplyWriter,
): Promise<void> {
  const fields = readSend(ask.version, ask.params);
  if (typeof fields === 'string')
    throw new A2aError('InvalidParams', fields, { param: /^[\w.[\]]+/.exec(fields)?.[0] });
  if (fields.taskId !== null)
    throw new A2aError('UnsupportedOperation', `${service} cannot continue a task. Send the message without a taskId`);
  const exact = exactValue(ask.paramsText, ask.params);
  const { message } = translateParams('send', ask.version, '1.0', exact) as { readonly message: JsonObject };
  const targetRequest: TargetRequest = {
    turns: [{ role: 'user', parts: fromA2aParts(message['parts']) }],
    arguments: null,
    contextId: null,
    taskId: null,
    maxTokens: null,
    stream: ask.operation === 'stream',
  };
  const cap = capOf(ask);
  const contextId = fields.contextId ?? randomUUID();
  await deps.handleMessage(
    {
      ask,
      service,
      messageId: fields.messageId,
      contextId,
      taskId: null,
      async open(callId, gone) {
        const { caller, requestId, traceparent, wantsReceipt } = ask;
        const plain = await target.toCall(name, targetRequest, { caller, requestId, traceparent, wantsReceipt });
        const request = {
          ...plain,
          ...(ask.payment ? { payment: ask.payment } : {}),
          ...(ask.quote ? { quote: ask.quote } : {}),
        };
        return openCall(deps.pipeline, capCost(request, cap), callId, gone);
      },
      write(call) {
        const answer = { deps, ask, service, call, contextId, out };
        return ask.operation === 'stream' ? streamed(answer) : whole(answer);
      },
    },
    out,
  );
}

interface BridgedAnswer {
  readonly deps: BridgedDeps;
  readonly ask: A2aRequest;
  readonly service: string;
  readonly call: StartedProviderCall<ContentResult, EventBatch>;
  readonly contextId: string;
  readonly out: ReplyWriter;
}

async function whole({ ask, call: { call, frames }, contextId, out }: BridgedAnswer): Promise<Answered | null> {
  const parts: Part[] = [];
  for await (const frame of frames) {
    if (frame.type === 'data')
      for (const event of frame.data.events) {
        const part = partOf(event);
        if (part !== null) parts.push(part);
      }
    if (frame.type !== 'settled') continue;
    const end = contentResultOf(frame);
    const { finish, error, errorCode = 'provider_unavailable', files = [] } = end;
    if (finish === 'failed') throw new GatewayError(errorCode, error ?? 'The work failed');
    const large = new LargeStrings();
    for (const file of files) parts.push(largePart(file, large));
    // A message must not be empty.
    if (parts.length === 0 && error !== null) parts.push({ kind: 'text', text: error });
    const message = {
      messageId: call.id,
      contextId,
      role: 'ROLE_AGENT',
      parts: joined(parts).map(toA2aPart),
      ...metadataOf(end),
    };
    const plain = withReceipt(
      withCost(JSON.stringify(translateEvent('1.0', ask.version, { message })), call.id, frame),
      ask.payment,
    );
    const text = files.length === 0 ? plain : { text: plain, large };
    const tell = () => out.result(text, costHeaders(call.id, frame));
    return { text, taskId: null, charged: spentOn(frame) > 0n, over: true, tell };
  }
  return null;
}

async function streamed({
  deps,
  ask,
  service,
  call: startedCall,
  contextId,
  out,
}: BridgedAnswer): Promise<Answered | null> {
  const { call, frames } = startedCall;
  const { tasks, now } = deps;
  const taskId = call.id;
  const key = keyOf(service, taskId);
  const { offer } = call.candidates[0]!;
  const parts: Part[] = [];
  const taskOf = (state: string, message: JsonObject | null) => ({
    id: taskId,
    contextId,
    status: { state, timestamp: new Date(now()).toISOString(), ...(message === null ? {} : { message }) },
    ...(parts.length === 0 ? {} : { artifacts: [{ artifactId: ARTIFACT, parts: joined(parts).map(toA2aPart) }] }),
  });
  const large = new LargeStrings();
  /** The task without an artifact that is too large to be stored. Its message says how to get the answer. */
  const withoutAnswer = ({ status, ...task }: ReturnType<typeof taskOf>, charged: boolean): string => {
    const message = statusMessage(taskId, contextId, charged ? REPEAT : NOT_STORED);
    return JSON.stringify({ ...task, artifacts: [], status: { message, ...status } });
  };
  const send = (event: JsonObject) => out.event(JSON.stringify(translateEvent('1.0', ask.version, event)));
  const sendPart = (part: Part) => {
    const append = parts.length > 0;
    parts.push(part);
    const artifact = { artifactId: ARTIFACT, parts: [toA2aPart(part)] };
    const event = { artifactUpdate: { taskId, contextId, artifact, append, lastChunk: false } };
    const text = JSON.stringify(translateEvent('1.0', ask.version, event));
    return out.event(part.kind === 'file' ? { text, large } : text);
  };
  const status = (state: string, message: JsonObject | null): JsonObject => {
    const { status: is } = taskOf(state, message);
    return { statusUpdate: { taskId, contextId, status: is } };
  };
  let begun = false;
  const begin = async () => {
    begun = true;
    await tasks.begin(
      {
        ...key,
        ...ownerOf(ask.caller),
        offerId: offer.id,
        provider: offer.provider.id,
        contextId,
        state: 'working',
        notes: BRIDGED,
        ttlMs: deps.taskTtlMs,
      },
      null,
    );
    const first = JSON.stringify(translateEvent('1.0', ask.version, { task: taskOf(WORKING, null) }));
    await out.event(withReceipt(withCost(first, call.id, null), ask.payment), costHeaders(call.id, null));
  };
  const finish = async (state: 'completed' | 'canceled' | 'failed', message: JsonObject | null, charged: boolean) => {
    const name = `TASK_STATE_${state.toUpperCase()}`;
    const bytesMax = KEPT_BYTES_MAX[charged ? 'charged' : 'free'];
    const task = taskOf(name, message);
    const snapshot = wholePiece(large.piecesOf(JSON.stringify(task)), bytesMax);
    await tasks.saw(key, {
      state,
      end: state === 'completed' ? 'complete' : 'free',
      snapshot: snapshot?.toString() ?? withoutAnswer(task, charged),
    });
    return { last: status(name, message), unnoted: snapshot === null ? task : null };
  };
  try {
    for await (const frame of frames) {
      if (frame.type === 'data')
        for (const event of frame.data.events) {
          const added = partsOf(event);
          if (!begun && (added.length > 0 || event.type === 'progress')) await begin();
          if (event.type === 'progress')
            await send(status(WORKING, event.text === null ? null : statusMessage(taskId, contextId, event.text)));
          for (const part of added) await sendPart(part);
        }
      if (frame.type !== 'settled') continue;
      if (!begun) await begin();
      const end = contentResultOf(frame);
      for (const file of end.files ?? []) await sendPart(largePart(file, large));
      const state = end.finish === 'failed' ? 'failed' : end.finish === 'cut' ? 'canceled' : 'completed';
      const charged = spentOn(frame) > 0n;
      const message = state === 'completed' ? null : statusMessage(taskId, contextId, end.error ?? 'The work failed');
      const { last, unnoted } = await finish(state, message, charged);
      const toText = (event: JsonObject) =>
        withReceipt(withCost(JSON.stringify(translateEvent('1.0', ask.version, event)), call.id, frame), ask.payment);
      const tell = () =>
        out.result(toText({ statusUpdate: { ...(last['statusUpdate'] as JsonObject), ...metadataOf(end) } }));
      if (end.finish === 'failed' || unnoted === null) await tell();
      if (end.finish === 'failed') return null;
      // The stored snapshot has no room for the artifact.
      return unnoted === null
        ? taskAgain(taskId, charged)
        : { text: { text: toText({ task: unnoted }), large }, taskId, charged, over: true, tell };
    }
    return null;
  } catch (error) {
    if (!begun) throw error;
    const { message } = toGatewayError(error);
    const { last } = await finish('failed', statusMessage(taskId, contextId, message), false);
    await out.result(JSON.stringify(translateEvent('1.0', ask.version, last)));
    return null;
  }
}

const ARTIFACT = 'answer';
const REPEAT =
  'The answer is too large to be stored with its task. Send the message again, with the same messageId, to get it. That costs nothing.';
const NOT_STORED = 'The answer was too large to be stored.';
const WORKING = 'TASK_STATE_WORKING';

const statusMessage = (taskId: string, contextId: string, text: string): JsonObject => ({
  messageId: randomUUID(),
  taskId,
  contextId,
  role: 'ROLE_AGENT',
  parts: [{ text }],
});

/**
 * Metadata of an answer: the usage of a model in the form that agents report it, and the reason why the answer is
 * incomplete.
 */
function metadataOf({ promptTokens, completionTokens, finish, error }: ContentResult): {
  readonly metadata?: JsonObject;
} {
  const used =
    promptTokens + completionTokens === 0
      ? {}
      : { 'tollgate/usage': { prompt: promptTokens, completion: completionTokens } };
  const metadata = { ...used, ...(finish === 'cut' ? { 'tollgate/cut': error } : {}) };
  return Object.keys(metadata).length === 0 ? {} : { metadata };
}

/** The parts that an event adds to a stream. Each delta of a text is a part of its own, as the provider sent it. */
function partsOf(event: CallEvent): readonly Part[] {
  if (event.type === 'text-delta')
    return event.json.map((inside) => ({ kind: 'text', text: textOf({ json: [inside] }) }));
  const part = partOf(event);
  return part === null ? [] : [part];
}

function joined(parts: readonly Part[]): readonly Part[] {
  const all: Part[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if (part.kind === 'text' && last?.kind === 'text')
      all[all.length - 1] = { kind: 'text', text: last.text + part.text };
    else all.push(part);
  }
  return all;
}
