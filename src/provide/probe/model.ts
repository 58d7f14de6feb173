import type { JsonObject } from '#wire';
import type { HttpTarget, Service } from '#config';
import { ask, eventData, jsonObject, mustSucceed } from './ask.ts';
import { ProbeFailure, type Check } from './check.ts';
import { wireChecks } from './model-wire.ts';
import { adviceOnCap, firstAnswer, type Chat, type FirstAnswer } from './model-cap.ts';

type ModelService = Extract<Service, { primitive: 'model' }>;

/** Checks that a model answers one small chat, in one piece and as a stream, both times with usage. */
export function modelChecks(service: ModelService, target: HttpTarget): readonly Check[] {
  const { upstreamModel, outputModalities } = service.model;
  let first: Promise<FirstAnswer> | null = null;
  if (!outputModalities.includes('text')) {
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
        const usage = usageOf(jsonObject(answer.text, 'the answer'), 'the answer');
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
        return `streams, ${usageOf(lastChunk(text), 'streaming: the last chunk before [DONE]')}`;
      },
    },
    ...(service.model.wires ?? []).flatMap((wire) => wireChecks(service, target, wire)),
  ];
}

/** Returns the last event before `[DONE]`. */
function lastChunk(text: string): JsonObject {
  const events = eventData(text).map((data) => data.trim());
  if (events.at(-1) !== '[DONE]') throw new ProbeFailure('streaming: the last line is not data: [DONE]');
  if (events.length < 2) throw new ProbeFailure('streaming: nothing comes before [DONE]');
  return jsonObject(events.at(-2)!, 'streaming: the last chunk');
}

/** The usage is required because the provider's earnings are computed from it. The total is not required. */
function usageOf({ usage }: JsonObject, where: string): string {
  if (typeof usage !== 'object' || usage === null)
    throw new ProbeFailure(`${where} has no usage, so calls would earn nothing`);
  const { prompt_tokens: prompt, completion_tokens: completion } = usage as Record<string, unknown>;
  for (const [name, count] of Object.entries({ prompt_tokens: prompt, completion_tokens: completion })) {
    if (!Number.isSafeInteger(count) || (count as number) < 0)
      throw new ProbeFailure(`${where} has a usage whose ${name} is not a number of tokens`);
  }
  return `usage ${prompt as number} + ${completion as number} tokens`;
}
