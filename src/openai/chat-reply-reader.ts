import { GatewayError, parseJson, tooLarge, TooMuchStructure, type JsonLimits, type ReplyReader } from '#gateway';
import { completeEnd, cutEnd, type Produced, type ReplyContext } from './chat-end.ts';
import { partialReply } from './partial-reply.ts';
import { failedByItsOwnWords, malformed, retryAfterOf, toFailure } from './chat-failure.ts';

type Json = Record<string, unknown>;

/** Providers' replies may be larger than requests: log probabilities alone are a dozen keys a token. */
const REPLY_LIMITS: JsonLimits = { jsonDepthMax: 128, jsonKeysMax: 500_000, repairText: true };

/** Reads a reply that is one JSON object. Nothing goes out before its end, so that a failed reply can be retried elsewhere. */
export function createChatReplyReader(context: ReplyContext): ReplyReader {
  const collected = createCollector(context.replyBytesMax);
  let retryAfterS: number | undefined;

  return {
    head(status, headers) {
      retryAfterS = retryAfterOf(headers['retry-after']);
      checkHead(status, headers);
      if (status < 400 && contentTypeOf(headers).startsWith('text/event-stream'))
        throw malformed('it streamed a reply that was asked for in one piece');
    },
    failure: (status, body) => toFailure(status, body, retryAfterS),
    data(chunk) {
      collected.push(chunk);
      return null;
    },
    end() {
      const produced = readCompletion(context, parseReply(collected.take()));
      return completeEnd(context, produced);
    },
    cut: (cut) => cutEnd(context, partialReply(context, collected.take()), cut),
  };
}

/** Throws UpstreamFailure for a status that is neither success nor error, and for a compressed body, which nobody asked for. */
export function checkHead(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
  if (status >= 400) return;
  if (status < 200 || status >= 300) throw malformed(`it answered with status ${status}`);
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== '' && encoding !== 'identity') throw malformed('it sent a compressed reply');
}

export function contentTypeOf(headers: Readonly<Record<string, string | string[] | undefined>>): string {
  const type = headers['content-type'];
  return typeof type === 'string' ? type.toLowerCase() : '';
}

/** Keeps the chunks of a body up to `bytesMax`; with the one that goes beyond it, push throws UpstreamFailure `tooLarge`. */
export function createCollector(bytesMax: number) {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  return {
    push(chunk: Uint8Array): void {
      bytes += chunk.byteLength;
      chunks.push(chunk);
      if (bytes > bytesMax) throw tooLarge(`its reply is larger than ${bytesMax} bytes`);
    },
    take: (): Buffer => {
      const only = chunks[0];
      if (chunks.length !== 1 || !only) return Buffer.concat(chunks);
      return Buffer.isBuffer(only) ? only : Buffer.from(only.buffer, only.byteOffset, only.byteLength);
    },
  };
}

/** Parses a provider's JSON. Throws UpstreamFailure on anything but an object, and on an object that reports an error. */
export function parseReply(bytes: Uint8Array): Json {
  let parsed: unknown;
  try {
    parsed = parseJson(bytes, REPLY_LIMITS);
  } catch (error) {
    if (error instanceof TooMuchStructure) throw tooLarge('its reply has more structure than is read', { cause: error });
    if (error instanceof GatewayError) throw malformed('its reply is not valid JSON', error);
    throw error;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw malformed('its reply is no JSON object');
  const reply = parsed as Json;
  if (reply['error']) throw failedByItsOwnWords(reply['error']);
  return reply;
}

/** Checks and completes a whole completion, in place. Throws UpstreamFailure when it has no choices with messages. */
export function readCompletion(context: ReplyContext, reply: Json): Produced {
  const { choices } = reply;
  if (!Array.isArray(choices) || choices.length === 0) throw malformed('its reply has no choices');
  const finishReasons: string[] = [];
  let outputBytes = 0;
  choices.forEach((item: unknown, position) => {
    const choice = item as Json | null;
    const message = choice?.['message'];
    if (typeof choice !== 'object' || choice === null || typeof message !== 'object' || message === null)
      throw malformed('its reply has a choice without a message');
    if (typeof choice['index'] !== 'number') choice['index'] = position;
    // Some providers put the reason beside the choices.
    if (!choice['finish_reason'] && typeof reply['finish_reason'] === 'string') choice['finish_reason'] = reply['finish_reason'];
    choice['finish_reason'] ??= null;
    if (typeof choice['finish_reason'] === 'string' && choice['finish_reason'] !== '') finishReasons.push(choice['finish_reason']);
    outputBytes += textBytes(message as Json);
  });
  if (reply['finish_reason'] !== undefined) reply['finish_reason'] = undefined;
  const claim = reply['usage'];
  reply['id'] = context.callId;
  reply['object'] = 'chat.completion';
  if (typeof reply['created'] !== 'number') reply['created'] = context.created;
  reply['model'] = context.service;
  return { body: reply, before: null, claim, outputBytes, finishReasons, choices: choices.length, malformed: false };
}

/** Bytes of text that a message or a delta carries: what a model produced, as far as it can be counted. */
export function textBytes(message: Json): number {
  let bytes = 0;
  for (const key of TEXT_KEYS) {
    const value = message[key];
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
    else if (key === 'content' && Array.isArray(value)) bytes += Buffer.byteLength(JSON.stringify(value));
  }
  const calls = message['tool_calls'];
  if (Array.isArray(calls)) for (const call of calls as unknown[]) bytes += functionBytes((call as Json | null)?.['function']);
  return bytes + functionBytes(message['function_call']);
}

const TEXT_KEYS = ['content', 'reasoning', 'reasoning_content', 'refusal'];

function functionBytes(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const { name, arguments: given } = value as Json;
  return (typeof name === 'string' ? Buffer.byteLength(name) : 0) + (typeof given === 'string' ? Buffer.byteLength(given) : 0);
}
