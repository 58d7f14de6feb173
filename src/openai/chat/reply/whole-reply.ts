import { isObject } from '#wire';
import {
  BOUNDS,
  failedByItsOwnWords,
  failedInChoice,
  isError,
  malformed,
  parseReplyObject,
  readReplyObject,
  type JsonLimits,
} from '#wire/replies';
import type { ReplyEnd } from '#call';
import { argumentsText } from './tool-call-deltas.ts';
import { type FinishReason, finishReasonOf, setFinishReason } from './finish-reason.ts';
import { withoutList } from '../request/content-lists.ts';
import { type ChatResult, completeEnd, type Produced, type ReplyContext } from './chat-end.ts';
import { withCounts } from './chat-usage.ts';
import { addMedia, otherBytes, textBytes, cutChoices } from './output-bound.ts';

/* A reply in one piece, parsed as a whole. */

/** The form in which a whole reply goes out: as a completion, or as the one chunk of a stream. */
export type ReplyForm = 'completion' | 'chunk';

/** The end of a reply that is not streamed. Throws UpstreamFailure for anything that is not a completion. */
export function endHere(
  context: ReplyContext,
  bytes: Uint8Array,
  form: ReplyForm,
  limits: JsonLimits = BOUNDS.reply,
): ReplyEnd<ChatResult> {
  const produced = readCompletion(context, parseReply(bytes, limits));
  return completeEnd(context, form === 'chunk' ? asChunk(produced) : produced);
}

/** Parses a provider's JSON. Throws UpstreamFailure if it is not an object, or if the object reports an error. */
export function parseReply(bytes: Uint8Array, limits: JsonLimits = BOUNDS.reply): Record<string, unknown> {
  return unlessError(parseReplyObject(bytes, limits));
}

/** As parseReply, for a reply that may be large. It is parsed over several turns of the event loop. */
export const readReply = async (bytes: Buffer): Promise<Record<string, unknown>> =>
  unlessError(await readReplyObject(bytes, BOUNDS.reply));

/** The request may have caused so much structure. */

function unlessError(reply: Record<string, unknown>): Record<string, unknown> {
  if (isError(reply['error'])) throw failedByItsOwnWords(reply['error']);
  return reply;
}

/**
 * Checks and completes a whole completion, in place. Throws UpstreamFailure if it has no choices, or a choice
 * without a message.
 */
function readCompletion(context: ReplyContext, reply: Record<string, unknown>): Produced {
  const { choices } = reply;
  if (!Array.isArray(choices) || choices.length === 0) throw malformed('its reply has no choices');
  const finishReasons: FinishReason[] = [];
  let outputBytes = 0;
  let unworded = 0;
  const media = { pictures: 0, soundBytes: 0 };
  refuseFailed(choices as readonly unknown[]);
  choices.forEach((item: unknown, position) => {
    const choice = item as Record<string, unknown> | null;
    const message = choice?.['message'];
    if (typeof choice !== 'object' || choice === null || typeof message !== 'object' || message === null)
      throw malformed('its reply has a choice without a message');
    withoutList(message as Record<string, unknown>, context.service);
    completeCalls(message as Record<string, unknown>, `${context.callId}_${position}`);
    if (typeof choice['index'] !== 'number') choice['index'] = position;
    // Some providers put the finish reason beside the choices.
    const word = choice['finish_reason'] || reply['finish_reason'];
    const reason = finishReasonOf(word);
    choice['finish_reason'] = null;
    if (reason !== null) {
      setFinishReason(choice, reason, word);
      finishReasons.push(reason);
    }
    (message as Record<string, unknown>)['role'] = 'assistant';
    outputBytes += textBytes(message as Record<string, unknown>);
    unworded += otherBytes(message as Record<string, unknown>);
    addMedia(message as Record<string, unknown>, media);
  });
  if (reply['finish_reason'] !== undefined) reply['finish_reason'] = undefined;
  if (reply['error'] !== undefined) reply['error'] = undefined;
  const claim = withCounts(reply['usage']);
  reply['id'] = context.callId;
  reply['object'] = 'chat.completion';
  reply['created'] = createdIn(reply, context.created);
  reply['model'] = context.service;
  reply['provider'] = context.provider;
  reply['system_fingerprint'] ??= null;
  const cut = cutChoices(choices as Record<string, unknown>[], outputBytes, context.budget);
  const { id, object, created, model, provider, system_fingerprint } = reply;
  const body = cut === null ? reply : { id, object, created, model, provider, system_fingerprint, choices: cut };
  return {
    body,
    before: null,
    claim,
    serviceTier: reply['service_tier'],
    outputBytes,
    otherBytes: unworded,
    ...media,
    finishReasons,
    choices: choices.length,
    malformed: false,
    overCap: cut !== null,
  };
}

/** When a reply or a chunk was made, in whole epoch seconds; `otherwise` if it does not say so. */
export const createdIn = ({ created }: Readonly<Record<string, unknown>>, otherwise: number): number =>
  typeof created === 'number' && Number.isFinite(created) ? Math.floor(created) : otherwise;

/** Throws UpstreamFailure if every choice is an error. */
function refuseFailed(choices: readonly unknown[]): void {
  const errors = choices.map((choice) => (isObject(choice) ? choice['error'] : null));
  if (errors.every(isError)) throw failedInChoice(errors[0]);
}

/**
 * Brings the tool calls of a message into the form that clients read, in place, as `createToolCallDeltas` does in a
 * stream: each has an id, which no other call of the conversation has, a type, and its arguments as text. `unique`:
 * names the message.
 */
function completeCalls(message: Record<string, unknown>, unique: string): void {
  const { tool_calls: calls } = message;
  if (!Array.isArray(calls)) return;
  message['tool_calls'] = calls.filter(isObject).map((call, index) => {
    const { id, type, function: calledFunction } = call;
    const isCall = isObject(calledFunction);
    return {
      ...call,
      id: typeof id === 'string' && id !== '' ? id : `call_${unique}_${index}`,
      type: typeof type === 'string' && type !== '' ? type : 'function',
      ...(isCall
        ? { function: { ...calledFunction, arguments: argumentsText(calledFunction['arguments']) ?? '' } }
        : {}),
    };
  });
}

export function asChunk(produced: Produced): Produced {
  const choices = (produced.body['choices'] as Record<string, unknown>[]).map(({ message, ...choice }) => {
    const { tool_calls: calls, ...delta } = message as Record<string, unknown>;
    const indexed = Array.isArray(calls)
      ? { tool_calls: (calls as readonly Record<string, unknown>[]).map((call, index) => ({ ...call, index })) }
      : {};
    return { ...choice, delta: { ...delta, ...indexed } };
  });
  const { system_fingerprint: fingerprint, ...body } = produced.body;
  const known = fingerprint === null ? {} : { system_fingerprint: fingerprint };
  return { ...produced, body: { ...body, ...known, object: 'chat.completion.chunk', choices } };
}

/**
 * Completes a whole completion, in place, with the members that OpenAI's API always sends, and that clients in strict
 * languages require. Many providers leave them out. A `system_fingerprint` that is null, which other clients require,
 * does not occur in that API.
 */
export function completeStrictly(body: Record<string, unknown>): void {
  if (body['system_fingerprint'] === null) body['system_fingerprint'] = undefined;
  const { choices } = body;
  if (!Array.isArray(choices)) return;
  for (const choice of choices as readonly Record<string, unknown>[]) {
    choice['logprobs'] ??= null;
    const { message } = choice;
    if (!isObject(message)) continue;
    const messageMembers = message as Record<string, unknown>;
    messageMembers['content'] ??= null;
    messageMembers['refusal'] ??= null;
  }
}
