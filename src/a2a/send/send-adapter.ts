import { setTimeout as sleep } from 'node:timers/promises';
import { type LargeStrings, UpstreamFailure } from '#wire';
import type { Offer } from '#catalog';
import { ownerOf } from '#tasks';
import type { GeneratedAdapter, ReplyEnd, Send } from '#call';
import { broken, readAgentBatches } from '../agent/agent-reply.ts';
import { chooseLink } from '../agent/resolve.ts';
import { hear } from '../protocol/extensions.ts';
import { A2aError, A2A_ERRORS } from '../wire/errors.ts';
import { AgentStream } from './agent-stream.ts';
import { claimContext, observationOf } from '../protocol/agent-tasks.ts';
import {
  type A2aResult,
  type EventText,
  type EventTexts,
  eventTexts,
  isTooLarge,
  measureWork,
  pendingEnd,
  toEnd,
} from '../protocol/ending.ts';
import { type RunningTask, type SendAdapterDeps, type SendRequest, SentMessage, update } from './sent-message.ts';
import { askOfTask } from '../agent/ask-for-task.ts';
import { isInterrupted, isTerminal } from '../wire/events.ts';

export interface SendAdapter extends GeneratedAdapter<A2aResult, EventTexts> {
  /** Id of the task that the message began or continued; null until the agent names one. */
  task(): string | null;
  /** The large strings of its frames, which have their marks. Forget those of a frame that was written. */
  readonly large: LargeStrings;
  /** Resolves when the end of the task is stored and all its calls are settled. */
  noted(): Promise<void>;
}

/**
 * Sends a message to an agent and reads the answer. The task is stored, and its lock kept, before the client sees it.
 * From then on a broken connection is not an error of the call, because the task goes on. The gateway then sees the end
 * of the task another way.
 */
export function createSendAdapter(deps: SendAdapterDeps, ask: SendRequest): SendAdapter {
  const message = new SentMessage(deps, ask);
  return {
    begin(prepared) {
      message.call = prepared;
    },
    startAttempt: (offer, send, signal, detached) => startAttempt(message, offer, send, signal, detached),
    resolved(resolution) {
      // If the settlement failed, a later look at the task settles the lock.
      if (resolution === 'settled') message.note(message.call.id);
    },
    large: message.large,
    noted: () => message.noted,
    task: () => message.taskId,
  };
}

async function* startAttempt(
  message: SentMessage,
  offer: Offer,
  send: Send,
  signal: AbortSignal,
  detached: Send,
): AsyncGenerator<EventTexts, ReplyEnd<A2aResult>, undefined> {
  const { deps, ask, call } = message;
  if (ask.taskId === null) await deps.tasks.admit(ownerOf(call.caller));
  await claimContext(deps.tasks, call.caller, offer.service, ask.contextId);
  const facts = await deps.cards.facts(offer);
  const link = chooseLink(offer, facts, ask.begunIn ?? ask.version);
  const operation = operationOf(ask, offer, facts.streaming);
  message.measuring = measureWork(offer, ask.paramsText);
  // The routes of other protocols read the parts of an answer, so they need all of its text.
  const large = ask.waits ? undefined : { strings: message.large, bytesMax: deps.filesBytesMax };
  const adapter = new AgentStream(message, { offer, link, operation, send, detached, signal });
  try {
    const exchange = adapter.ask(facts);
    try {
      const reply = await exchange.head;
      hear(ask.extensions, reply);
      reading: for await (const batch of readAgentBatches(link, call.id, reply, deps.replyBytesMax, large)) {
        const texts: EventText[] = [];
        try {
          for (const agentReply of batch) {
            const step = await adapter.receive(agentReply, reply.status);
            if (step === null) break reading;
            if (typeof step !== 'string') return step;
            texts.push({
              text: step,
              value: agentReply.kind === 'result' && step === agentReply.text ? agentReply.value : undefined,
            });
          }
        } finally {
          // Whatever comes after them, they come first.
          if (texts.length > 0) yield eventTexts(texts);
        }
      }
      if (adapter.task === null) throw broken('the agent ended its answer without any content', reply.status);
    } catch (error) {
      if (!adapter.waitsDespite(error)) throw error;
      if (!(error instanceof UpstreamFailure)) deps.onError(error);
    }
    if (!adapter.waits) return pendingEnd(null);
    return yield* waitForTask(message, adapter.task!, send, adapter.ending);
  } catch (error) {
    return await adapter.failed(error);
  } finally {
    adapter.over();
  }
}

/** Throws A2aError `UnsupportedOperation` if the client asks for a stream and the agent does not stream. */
function operationOf({ operation, waits }: SendRequest, { service }: Offer, streams: boolean): 'send' | 'stream' {
  if (operation !== 'stream') return 'send';
  if (streams) return 'stream';
  if (waits) return 'send';
  throw new A2aError(
    'UnsupportedOperation',
    `The agent card of ${service} says that it does not stream. Send the message without streaming`,
  );
}

/** Errors of an agent that never shows a task, so that retries are useless. */
const UNSHOWN: ReadonlySet<number> = new Set([A2A_ERRORS.MethodNotFound.code, A2A_ERRORS.UnsupportedOperation.code]);

const WAIT_MIN_MS = 500;
const WAIT_MAX_MS = 5_000;

/**
 * Polls the task after its stream or answer has ended, for a client that cannot ask for the task. Ends when the task
 * ends or asks for input.
 */
async function* waitForTask(
  message: SentMessage,
  task: RunningTask,
  send: Send,
  ending: AbortSignal,
): AsyncGenerator<EventTexts, ReplyEnd<A2aResult>, undefined> {
  for (let pauseMs = WAIT_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, WAIT_MAX_MS)) {
    await sleep(pauseMs, undefined, { signal: ending });
    let step: ReplyEnd<A2aResult> | string | null;
    try {
      step = await poll(message, task, send);
    } catch (error) {
      if (ending.aborted || isTooLarge(error)) throw error;
      if (error instanceof A2aError)
        throw new Error(`the agent does not show its task: ${error.message}`, { cause: error });
      if (!(error instanceof UpstreamFailure)) message.deps.onError(error);
      continue;
    }
    if (typeof step === 'string') yield eventTexts([{ text: step, value: undefined }]);
    else if (step !== null) return step;
  }
}

/** Returns the end of the call, the task as text if it has given output, or null if nothing has changed. */
async function poll(message: SentMessage, task: RunningTask, send: Send): Promise<ReplyEnd<A2aResult> | string | null> {
  const { deps, measuring } = message;
  const { offer, link, key } = task;
  const current = await askOfTask(message.asking(task, send), 'get');
  if (current.kind === 'error') {
    if (current.error.code === A2A_ERRORS.TaskNotFound.code) return message.lost(key, current.error);
    if (UNSHOWN.has(current.error.code)) throw new A2aError('UnsupportedOperation', current.error.message);
    return null;
  }
  const { event } = current;
  const text = message.textOf(link, current.value);
  const result = { text, event, error: null, cut: null };
  if (isTerminal(event.state)) return message.over(task, result, Math.max(measuring.bytes, Buffer.byteLength(text)));
  if (event.state !== task.state || (event.output && !task.gave)) {
    const observation = observationOf(offer, event, task.gave, measuring.bytes);
    const seen = observation && (await deps.tasks.saw(key, observation));
    if (seen?.task.live === false) return message.endedElsewhere(key);
  }
  update(task, event);
  if (isInterrupted(event.state)) return toEnd(offer, result, message.sofar(task.gave));
  return event.output ? text : null;
}
