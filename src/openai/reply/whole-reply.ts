import { isObject } from '#wire';
import { failedByItsOwnWords, malformed, parseReplyObject, tooLarge, type JsonLimits } from '#wire/replies';
import type { ReplyEnd } from '#gateway';
import { completeEnd, type Produced, type ReplyContext } from './chat-end.ts';
import { otherBytes, textBytes } from './message-text.ts';
import { cutChoices } from '../caps/output-bound.ts';

type Json = Record<string, unknown>;

/** The form in which a whole reply goes out: as a completion, or as the one chunk of a stream. */
export type ReplyForm = 'completion' | 'chunk';

/** The event loop builds 20,000 keys in about 30 ms. */
const HERE: JsonLimits = { jsonDepthMax: 128, jsonKeysMax: 20_000, jsonElementsMax: 200_000, repairText: true };
/** High, because log probabilities alone have a dozen keys for each token. */
export const ELSEWHERE: JsonLimits = { jsonDepthMax: 128, jsonKeysMax: 500_000, repairText: true };

/** The end of a reply that is not streamed. Throws UpstreamFailure for anything that is not a completion. */
export function endHere(
  context: ReplyContext,
  bytes: Uint8Array,
  form: ReplyForm,
  limits: JsonLimits = HERE,
): ReplyEnd {
  const produced = readCompletion(context, parseReply(bytes, limits));
  return completeEnd(context, form === 'chunk' ? asChunk(produced) : produced);
}

/** Parses a provider's JSON. Throws UpstreamFailure if it is not an object, or if the object reports an error. */
export function parseReply(bytes: Uint8Array, limits: JsonLimits = HERE): Json {
  // The request may have caused so much structure.
  const reply: Json = parseReplyObject(bytes, limits, (what, cause) => tooLarge(what, { cause }));
  if (reply['error']) throw failedByItsOwnWords(reply['error']);
  return reply;
}

/**
 * Checks and completes a whole completion, in place. Throws UpstreamFailure if it has no choices, or a choice
 * without a message.
 */
function readCompletion(context: ReplyContext, reply: Json): Produced {
  const { choices } = reply;
  if (!Array.isArray(choices) || choices.length === 0) throw malformed('its reply has no choices');
  const finishReasons: string[] = [];
  let outputBytes = 0;
  let unworded = 0;
  choices.forEach((item: unknown, position) => {
    const choice = item as Json | null;
    const message = choice?.['message'];
    if (typeof choice !== 'object' || choice === null || typeof message !== 'object' || message === null)
      throw malformed('its reply has a choice without a message');
    if (typeof choice['index'] !== 'number') choice['index'] = position;
    // Some providers put the finish reason beside the choices.
    if (!choice['finish_reason'] && typeof reply['finish_reason'] === 'string')
      choice['finish_reason'] = reply['finish_reason'];
    choice['finish_reason'] ??= null;
    if (typeof choice['finish_reason'] === 'string' && choice['finish_reason'] !== '')
      finishReasons.push(choice['finish_reason']);
    outputBytes += textBytes(message as Json);
    unworded += otherBytes(message as Json);
  });
  if (reply['finish_reason'] !== undefined) reply['finish_reason'] = undefined;
  const claim = reply['usage'];
  reply['id'] = context.callId;
  reply['object'] = 'chat.completion';
  if (typeof reply['created'] !== 'number') reply['created'] = context.created;
  reply['model'] = context.service;
  reply['provider'] = context.provider;
  reply['system_fingerprint'] ??= null;
  const cut = cutChoices(choices as Json[], outputBytes, context.budget);
  const { id, object, created, model, provider, system_fingerprint } = reply;
  const body = cut === null ? reply : { id, object, created, model, provider, system_fingerprint, choices: cut };
  return {
    body,
    before: null,
    claim,
    outputBytes,
    otherBytes: unworded,
    finishReasons,
    choices: choices.length,
    malformed: false,
    overCap: cut !== null,
  };
}

/** A tool call in the form of a stream: with its index, an id, and its arguments as text. */
function asDelta(call: Readonly<Record<string, unknown>>, index: number, completion: unknown): Json {
  const id = typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : `call_${String(completion)}_${index}`;
  const { function: named } = call;
  if (!isObject(named)) return { ...call, index, id };
  const { arguments: given = '' } = named;
  const text = typeof given === 'string' ? given : JSON.stringify(given);
  return { ...call, index, id, function: { ...named, arguments: text } };
}

/** A whole completion as the one chunk of a stream. */
export function asChunk(produced: Produced): Produced {
  const choices = (produced.body['choices'] as Json[]).map(({ message, ...choice }) => {
    const { tool_calls: calls, ...delta } = message as Json;
    const indexed = Array.isArray(calls)
      ? { tool_calls: calls.filter(isObject).map((call, index) => asDelta(call, index, produced.body['id'])) }
      : {};
    return { ...choice, delta: { ...delta, ...indexed } };
  });
  const { system_fingerprint: fingerprint, ...body } = produced.body;
  const known = fingerprint === null ? {} : { system_fingerprint: fingerprint };
  return { ...produced, body: { ...body, ...known, object: 'chat.completion.chunk', choices } };
}
