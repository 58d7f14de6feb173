import { type JsonObject, isObject } from '#wire';
import {
  type HttpTarget,
  type Service,
  keyHeaders,
  NATIVE_APIS,
  type NativeWireName,
  servesRealtime,
  upstreamPath,
} from '#config';
import { readFieldRefusal } from '#config/refused-cap';
import { ask, eventData, jsonObject, mustSucceed, ProbeFailure, type Check } from './ask.ts';
import { kindChecks } from './kinds.ts';
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
    const checks = kindChecks(service, target);
    if (checks.length > 0) return checks;
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
        const streamAnswer = await chat({ ...cap, stream: true, stream_options: { include_usage: true } });
        const refused =
          readFieldRefusal(streamAnswer.status, Buffer.from(streamAnswer.text), 'stream_options.include_usage') !==
          null;
        const answer = refused ? await chat({ ...cap, stream: true }) : streamAnswer;
        mustSucceed(answer);
        const { headers, text } = answer;
        const type = String(headers['content-type'] ?? 'none');
        if (type.startsWith('application/json')) {
          const usage = chatUsage(jsonObject(text, 'the answer'), 'the answer');
          return { detail: `works, without streaming, ${usage}`, advice: [UNSTREAMED] };
        }
        if (!type.startsWith('text/event-stream'))
          throw new ProbeFailure(`streaming: the content type is ${type}; right is text/event-stream`);
        const place = `streaming${refused ? ` ${WITHOUT_OPTIONS}` : ''}: the last chunk before [DONE]`;
        const detail = `streams, ${chatUsage(lastChunk(text), place)}`;
        return refused ? { detail, advice: [REFUSED_OPTIONS] } : detail;
      },
    },
    ...(wires ?? []).filter(isProbed).flatMap((wire) => wireChecks(service, target, wire)),
    ...sessions,
  ];
}

const WITHOUT_OPTIONS = 'without stream_options, which it refuses';
const REFUSED_OPTIONS =
  'it refuses stream_options, with which usage is streamAnswer for: the first stream after each start is sent twice';
const UNSTREAMED =
  'it answers "stream": true with application/json: who asks for a stream gets the whole answer at once, at its end';

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

const isProbed = (wire: string): wire is NativeWireName => Object.hasOwn(NATIVE_APIS, wire);

/** Checks that the model answers one small request of the wire, in one piece and as a stream, both times with usage. */
function wireChecks(service: ModelService, target: HttpTarget, wire: NativeWireName): readonly Check[] {
  const api = NATIVE_APIS[wire];
  const { body, last, isLast, usageIn, counts } = api.probe;
  const { upstreamModel } = service.model;
  const send = async (stream: boolean) => {
    const path = api.path(upstreamModel, stream);
    const answer = await ask({
      method: 'POST',
      url: upstreamPath(target.url, path),
      headers: { ...api.headers, ...keyHeaders(target.apiKey, path) },
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

function wireUsage(usage: unknown, counts: readonly [prompt: string, answer: string], where: string): string {
  if (!isObject(usage) || Object.keys(usage).length === 0)
    throw new ProbeFailure(`${where} has no usage, so calls would earn nothing`);
  return tokensOf(usage, counts, where);
}
