import { isObject, type JsonObject } from '#wire';
import {
  ANTHROPIC_VERSION,
  type HttpTarget,
  keyHeaders,
  MESSAGES_PATH,
  type NativeWireName,
  RESPONSES_PATH,
  type Service,
} from '#config';
import { ask, eventData, jsonObject, mustSucceed } from './ask.ts';
import { ProbeFailure, type Check } from './check.ts';

type ModelService = Extract<Service, { primitive: 'model' }>;

/** The probe of a wire that a model speaks beside chat. */
interface WireProbe {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
  /** Type of the event that ends a stream. */
  readonly last: string;
  /** The events of a stream that may have its usage; of a reply in one piece the reply itself. */
  usageIn(event: JsonObject): unknown;
}

const WORD = 'hello';
const TOKENS = 16;

const PROBES: Readonly<Record<NativeWireName, WireProbe>> = {
  messages: {
    path: MESSAGES_PATH,
    headers: { 'anthropic-version': ANTHROPIC_VERSION },
    body: { max_tokens: TOKENS, messages: [{ role: 'user', content: WORD }] },
    last: 'message_stop',
    usageIn: ({ usage, message }) => ({
      ...(isObject(message) && isObject(message['usage']) ? message['usage'] : {}),
      ...(usage as object | undefined),
    }),
  },
  responses: {
    path: RESPONSES_PATH,
    headers: {},
    body: { max_output_tokens: TOKENS, input: WORD, store: false },
    last: 'response.completed',
    usageIn: ({ usage, response }) => (isObject(response) ? response['usage'] : usage),
  },
};

/** A model answers one small request of the wire, whole and streamed, and says each time what it used. */
export function wireChecks(service: ModelService, target: HttpTarget, wire: NativeWireName): readonly Check[] {
  const { path, headers, body, last, usageIn } = PROBES[wire];
  const send = async (more: JsonObject) => {
    const answer = await ask({
      method: 'POST',
      url: `${target.url}${path}`,
      headers: { ...headers, ...keyHeaders(target.apiKey, path) },
      body: { model: service.model.upstreamModel, ...body, ...more },
    });
    mustSucceed(answer);
    return answer;
  };
  const name = `${service.name}, ${wire}`;
  return [
    {
      kind: 'model',
      name,
      run: async () => `answers, ${usageOf(usageIn(jsonObject((await send({})).text, 'the answer')), 'the answer')}`,
    },
    {
      kind: 'model',
      name: `${name}, streamed`,
      async run() {
        const { headers: given, text } = await send({ stream: true });
        const type = String(given['content-type'] ?? 'none');
        if (!type.startsWith('text/event-stream'))
          throw new ProbeFailure(`streaming: the content type is ${type}; right is text/event-stream`);
        const events = eventData(text)
          .filter((data) => data.trim() !== '[DONE]')
          .map((data) => jsonObject(data, 'streaming: an event'));
        // A small bound may end the answer before it is complete.
        const ends = new Set([last, 'response.incomplete']);
        if (!ends.has(String(events.at(-1)?.['type'])))
          throw new ProbeFailure(`streaming: the last event is not ${last}`);
        const usage = events.reduce((sum, event) => ({ ...sum, ...(usageIn(event) as object | null | undefined) }), {});
        return `streams, ${usageOf(usage, 'streaming: the events')}`;
      },
    },
  ];
}

/** Earnings are counted by these numbers. */
function usageOf(usage: unknown, where: string): string {
  if (!isObject(usage) || Object.keys(usage).length === 0)
    throw new ProbeFailure(`${where} has no usage: calls would earn nothing`);
  const { input_tokens: input, output_tokens: output } = usage;
  for (const [name, count] of Object.entries({ input_tokens: input, output_tokens: output }))
    if (!Number.isSafeInteger(count) || (count as number) < 0)
      throw new ProbeFailure(`${where} has a usage whose ${name} is no count of tokens`);
  return `usage ${input as number} + ${output as number} tokens`;
}
