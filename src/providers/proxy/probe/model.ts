import { type JsonObject, isObject } from '#wire';
import {
  type HttpTarget,
  type Service,
  ANTHROPIC_VERSION,
  geminiPath,
  keyHeaders,
  MESSAGES_PATH,
  type NativeWireName,
  RESPONSES_PATH,
  servesRealtime,
  upstreamPath,
} from '#config';
import { ask, eventData, jsonObject, mustSucceed, ProbeFailure, type Check } from './ask.ts';
import { audioChecks } from './audio.ts';
import { realtimeCheck } from './realtime.ts';
import { adviceOnCap, firstAnswer, type Chat, type FirstAnswer } from './model-cap.ts';

type ModelService = Extract<Service, { primitive: 'model' }>;

/** Checks that a model answers one small chat, in one piece and as a stream, both times with usage. */
export function modelChecks(service: ModelService, target: HttpTarget): readonly Check[] {
  const { upstreamModel, outputModalities, wires } = service.model;
  const sessions = servesRealtime(service.model) ? [realtimeCheck(service.name, target, upstreamModel)] : [];
  // A model with sessions alone takes no chats.
  if (sessions.length > 0 && wires!.length === 1) return sessions;
  let first: Promise<FirstAnswer> | null = null;
  if (!outputModalities.includes('text')) {
    const audio = audioChecks({ name: service.name, outputModalities }, target, upstreamModel);
    if (audio.length > 0) return audio;
    return [{ kind: 'model', name: service.name, run: async () => 'not called, because it does not answer with text' }];
  }
  const chat: Chat = (more) => {
    const body = { model: upstreamModel, messages: [{ role: 'user', content: 'hello' }], ...more };
    return ask({ method: 'POST', url: `${target.url}/chat/completions`, apiKey: target.apiKey, body });
  };
  // Both checks need to know which name of the cap the model accepts.
  const answered = () => (first ??= firstAnswer(chat, service.model));
  return [
    {
      kind: 'model',
      name: service.name,
      async run() {
        const answer = await answered();
        const usage = chatUsage(jsonObject(answer.text, 'the answer'), 'the answer');
        return { detail: `answers, ${usage}`, advice: await adviceOnCap(chat, answer, service.model) };
      },
    },
    {
      kind: 'model',
      name: `${service.name}, streamed`,
      async run() {
        const { cap } = await answered();
        const answer = await chat({ ...cap, stream: true, stream_options: { include_usage: true } });
        mustSucceed(answer);
        const { headers, text } = answer;
        const type = String(headers['content-type'] ?? 'none');
        if (!type.startsWith('text/event-stream'))
          throw new ProbeFailure(`streaming: the content type is ${type}; right is text/event-stream`);
        return `streams, ${chatUsage(lastChunk(text), 'streaming: the last chunk before [DONE]')}`;
      },
    },
    ...(wires ?? []).filter(isProbed).flatMap((wire) => wireChecks(service, target, wire)),
    ...sessions,
  ];
}

/** Returns the last event before `[DONE]`. */
function lastChunk(text: string): JsonObject {
  const events = eventData(text).map((data) => data.trim());
  if (events.at(-1) !== '[DONE]') throw new ProbeFailure('streaming: the last line is not data: [DONE]');
  if (events.length < 2) throw new ProbeFailure('streaming: nothing comes before [DONE]');
  return jsonObject(events.at(-2)!, 'streaming: the last chunk');
}

/** The chat wire's usage, for the result of a check. Throws ProbeFailure without one. The total is not required. */
function chatUsage({ usage }: JsonObject, where: string): string {
  if (typeof usage !== 'object' || usage === null)
    throw new ProbeFailure(`${where} has no usage, so calls would earn nothing`);
  return tokensOf(usage, ['prompt_tokens', 'completion_tokens'], where);
}

/** Both counts are required because the provider's earnings are computed from them. */
function tokensOf(usage: object, names: readonly [prompt: string, answer: string], where: string): string {
  const [prompt, answer] = names.map((name) => {
    const count: unknown = (usage as JsonObject)[name];
    if (!Number.isSafeInteger(count) || (count as number) < 0)
      throw new ProbeFailure(`${where} has a usage whose ${name} is not a number of tokens`);
    return count as number;
  });
  return `usage ${prompt} + ${answer} tokens`;
}

/** How to probe a wire that a model serves beside chat. */
interface WireProbe {
  path(model: string, stream: boolean): string;
  readonly headers: Readonly<Record<string, string>>;
  body(model: string, stream: boolean): JsonObject;
  /** The last event of a stream, for people. */
  readonly last: string;
  isLast(event: JsonObject): boolean;
  /** Reads the usage from an event of a stream, or from a reply in one piece. */
  usageIn(event: JsonObject): unknown;
  /** The members of the usage with the tokens of the prompt and of the answer. */
  readonly counts: readonly [prompt: string, answer: string];
}

const WORD = 'hello';
const TOKENS = 16;

const PROBES: Readonly<Record<NativeWireName, WireProbe>> = {
  messages: {
    path: () => MESSAGES_PATH,
    headers: { 'anthropic-version': ANTHROPIC_VERSION },
    body: (model, stream) => ({
      model,
      max_tokens: TOKENS,
      messages: [{ role: 'user', content: WORD }],
      ...(stream ? { stream } : {}),
    }),
    last: 'message_stop',
    isLast: ({ type }) => type === 'message_stop',
    usageIn: ({ usage, message }) => ({
      ...(isObject(message) && isObject(message['usage']) ? message['usage'] : {}),
      ...(usage as object | undefined),
    }),
    counts: ['input_tokens', 'output_tokens'],
  },
  responses: {
    path: () => RESPONSES_PATH,
    headers: {},
    body: (model, stream) => ({
      model,
      max_output_tokens: TOKENS,
      input: WORD,
      store: false,
      ...(stream ? { stream } : {}),
    }),
    last: 'response.completed',
    // The small cap may end the answer early.
    isLast: ({ type }) => type === 'response.completed' || type === 'response.incomplete',
    usageIn: ({ usage, response }) => (isObject(response) ? response['usage'] : usage),
    counts: ['input_tokens', 'output_tokens'],
  },
  gemini: {
    path: geminiPath,
    headers: {},
    body: () => ({
      contents: [{ role: 'user', parts: [{ text: WORD }] }],
      generationConfig: { maxOutputTokens: TOKENS },
    }),
    last: 'one with a finishReason',
    isLast: ({ candidates }) =>
      Array.isArray(candidates) && candidates.some((one) => isObject(one) && !!one['finishReason']),
    // An answer that only thought has no tokens of candidates.
    usageIn: ({ usageMetadata: usage }) => (isObject(usage) ? { candidatesTokenCount: 0, ...usage } : usage),
    counts: ['promptTokenCount', 'candidatesTokenCount'],
  },
};

const isProbed = (wire: string): wire is NativeWireName => wire in PROBES;

/** Checks that the model answers one small request of the wire, in one piece and as a stream, both times with usage. */
function wireChecks(service: ModelService, target: HttpTarget, wire: NativeWireName): readonly Check[] {
  const { path: pathOf, headers, body, last, isLast, usageIn, counts } = PROBES[wire];
  const { upstreamModel } = service.model;
  const send = async (stream: boolean) => {
    const path = pathOf(upstreamModel, stream);
    const answer = await ask({
      method: 'POST',
      url: upstreamPath(target.url, path),
      headers: { ...headers, ...keyHeaders(target.apiKey, path) },
      body: body(upstreamModel, stream),
    });
    mustSucceed(answer);
    return answer;
  };
  const name = `${service.name}, ${wire}`;
  return [
    {
      kind: 'model',
      name,
      run: async () =>
        `answers, ${wireUsage(usageIn(jsonObject((await send(false)).text, 'the answer')), counts, 'the answer')}`,
    },
    {
      kind: 'model',
      name: `${name}, streamed`,
      async run() {
        const { headers: replyHeaders, text } = await send(true);
        const type = String(replyHeaders['content-type'] ?? 'none');
        if (!type.startsWith('text/event-stream'))
          throw new ProbeFailure(`streaming: the content type is ${type}; right is text/event-stream`);
        const events = eventData(text)
          .filter((data) => data.trim() !== '[DONE]')
          .map((data) => jsonObject(data, 'streaming: an event'));
        if (!isLast(events.at(-1) ?? {})) throw new ProbeFailure(`streaming: the last event is not ${last}`);
        const usage = events.reduce((sum, event) => ({ ...sum, ...(usageIn(event) as object | null | undefined) }), {});
        return `streams, ${wireUsage(usage, counts, 'streaming: the events')}`;
      },
    },
  ];
}

function wireUsage(usage: unknown, counts: WireProbe['counts'], where: string): string {
  if (!isObject(usage) || Object.keys(usage).length === 0)
    throw new ProbeFailure(`${where} has no usage, so calls would earn nothing`);
  return tokensOf(usage, counts, where);
}
