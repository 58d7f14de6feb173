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

/** How to probe a wire that a model serves beside chat. */
interface WireProbe {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
  /** Type of the last event of a stream. */
  readonly last: string;
  /** Reads the usage from an event of a stream, or from a reply in one piece. */
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

/** Checks that the model answers one small request of the wire, in one piece and as a stream, both times with usage. */
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
        // The small cap may end the answer early.
        const ends = new Set([last, 'response.incomplete']);
        if (!ends.has(String(events.at(-1)?.['type'])))
          throw new ProbeFailure(`streaming: the last event is not ${last}`);
        const usage = events.reduce((sum, event) => ({ ...sum, ...(usageIn(event) as object | null | undefined) }), {});
        return `streams, ${usageOf(usage, 'streaming: the events')}`;
      },
    },
  ];
}

/** The usage is required because the provider's earnings are computed from it. */
function usageOf(usage: unknown, where: string): string {
  if (!isObject(usage) || Object.keys(usage).length === 0)
    throw new ProbeFailure(`${where} has no usage, so calls would earn nothing`);
  const { input_tokens: input, output_tokens: output } = usage;
  for (const [name, count] of Object.entries({ input_tokens: input, output_tokens: output }))
    if (!Number.isSafeInteger(count) || (count as number) < 0)
      throw new ProbeFailure(`${where} has a usage whose ${name} is not a number of tokens`);
  return `usage ${input as number} + ${output as number} tokens`;
}
