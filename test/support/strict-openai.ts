import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Json = Record<string, unknown>;

/** Properties of one model of the strict service. */
export interface StrictModel {
  /** The names of the cap that it accepts. It refuses the others with OpenAI's error. */
  readonly takes: readonly ('max_tokens' | 'max_completion_tokens')[];
  /** The most completion tokens. It refuses a larger cap. */
  readonly outputMax: number;
  /** The most tokens of prompt and cap together. It refuses more. Default: no limit. */
  readonly contextLength?: number;
  /** A reasoning model: it refuses `temperature`, `top_p` and similar parameters. */
  readonly reasons?: boolean;
  /** A smaller cap leaves no room for text, so it is refused. Default 1. */
  readonly roomAtLeast?: number;
  /** Names of caps that it accepts but doesn't obey. */
  readonly ignores?: readonly string[];
  /** Its error message for a cap that is too large. Default: OpenAI's message. */
  readonly tooLarge?: (name: string, asked: number, most: number) => string;
}

export interface StrictOpenAi {
  /** Base URL with `/v1`. */
  readonly url: string;
  /** Bodies of all requests in order of arrival, with the status of each answer. */
  readonly asked: { readonly body: Json; readonly status: number }[];
  stop(): Promise<void>;
}

/** Parameters of chat completions in OpenAI's published reference. */
const PARAMETERS = new Set(
  (
    'messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata modalities n ' +
    'parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier seed ' +
    'service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options'
  ).split(' '),
);
const OF_SAMPLING = ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'logprobs', 'logit_bias'];

/**
 * A chat service that refuses the same requests as OpenAI, with the same messages. Each word is a token. A reply has
 * `words` words, or fewer if the cap is lower.
 */
export async function startStrictOpenAi(
  models: Readonly<Record<string, StrictModel>>,
  words = 12,
): Promise<StrictOpenAi> {
  const asked: { body: Json; status: number }[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => {
      const body = JSON.parse(text) as Json;
      const refusal = refuse(body, models);
      asked.push({ body, status: refusal?.status ?? 200 });
      if (refusal === null) return answer(response, body, words, models[String(body['model'])]!.ignores ?? []);
      const { status, ...error } = refusal;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { type: 'invalid_request_error', ...error } }, null, 2));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    async stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly param: string | null;
  readonly code: string | null;
}

const promptTokensOf = (body: Json): number => JSON.stringify(body['messages']).split(/\s+/).length;

function refuse(body: Json, models: Readonly<Record<string, StrictModel>>): Refusal | null {
  const no = (message: string, param: string | null, code: string | null, status = 400): Refusal => ({
    status,
    message,
    param,
    code,
  });
  const model = models[String(body['model'])];
  if (!model)
    return no(
      `The model \`${String(body['model'])}\` does not exist or you do not have access to it.`,
      null,
      'model_not_found',
      404,
    );
  const unknown = Object.keys(body).find((name) => !PARAMETERS.has(name));
  if (unknown !== undefined) return no(`Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter');
  if (body['max_tokens'] !== undefined && body['max_completion_tokens'] !== undefined)
    return no(
      "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
      'max_tokens',
      'invalid_parameter_combination',
    );
  for (const name of ['max_tokens', 'max_completion_tokens'] as const) {
    if (body[name] === undefined || model.takes.includes(name)) continue;
    return model.takes.length > 0
      ? no(
          `Unsupported parameter: '${name}' is not supported with this model. Use '${model.takes[0]!}' instead.`,
          name,
          'unsupported_parameter',
        )
      : no(`Unsupported parameter: '${name}' is not supported with this model.`, name, 'unsupported_parameter');
  }
  const sampling = model.reasons ? OF_SAMPLING.find((name) => body[name] !== undefined && body[name] !== 1) : undefined;
  if (sampling !== undefined)
    return no(
      `Unsupported parameter: '${sampling}' is not supported with this model.`,
      sampling,
      'unsupported_parameter',
    );
  if (body['stream'] !== true && body['stream_options'] !== undefined)
    return no("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options', null);
  const name = body['max_tokens'] === undefined ? 'max_completion_tokens' : 'max_tokens';
  const cap = body[name];
  if (cap === undefined) return null;
  if (typeof cap !== 'number' || !Number.isInteger(cap))
    return no(`Invalid type for '${name}': expected an integer.`, name, 'invalid_type');
  if (cap < 1)
    return no(
      `Invalid '${name}': integer below minimum value. Expected a value >= 1, but got ${cap} instead.`,
      name,
      'integer_below_min_value',
    );
  if (cap > model.outputMax) {
    const say =
      model.tooLarge ??
      ((_, given, most) =>
        `${name} is too large: ${given}. This model supports at most ${most} completion tokens, whereas you provided ${given}.`);
    return no(say(name, cap, model.outputMax), name, 'invalid_value');
  }
  if (cap < (model.roomAtLeast ?? 1))
    return no(
      'Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens.',
      null,
      null,
    );
  const { contextLength } = model;
  const prompt = promptTokensOf(body);
  if (contextLength !== undefined && prompt + cap > contextLength)
    return no(
      `This model's maximum context length is ${contextLength} tokens. However, you requested ${prompt + cap} tokens (${prompt} in the messages, ` +
        `${cap} in the completion). Please reduce the length of the messages or completion.`,
      'messages',
      'context_length_exceeded',
    );
  return null;
}

function answer(response: ServerResponse, body: Json, words: number, ignores: readonly string[]): void {
  const name = ['max_tokens', 'max_completion_tokens'].find((one) => body[one] !== undefined && !ignores.includes(one));
  const cap = name === undefined ? Infinity : (body[name] as number);
  const said = Array.from({ length: Math.min(words, cap) }, (_, index) => `word${index} `);
  const [tool] = (body['tools'] ?? []) as { readonly function: { readonly name: string } }[];
  const calls = tool && [
    { id: 'call_1', type: 'function', function: { name: tool.function.name, arguments: '{"a":1}' } },
  ];
  const finish = calls ? 'tool_calls' : said.length < words ? 'length' : 'stop';
  const prompt = promptTokensOf(body);
  const usage = { prompt_tokens: prompt, completion_tokens: said.length, total_tokens: prompt + said.length };
  const about = { id: 'chatcmpl-1', created: 1_760_000_000, model: body['model'], system_fingerprint: 'fp_1' };
  if (body['stream'] !== true) {
    const message = {
      role: 'assistant',
      content: calls ? null : said.join(''),
      refusal: null,
      ...(calls ? { tool_calls: calls } : {}),
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({
        ...about,
        object: 'chat.completion',
        choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
        usage,
      }),
    );
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (choices: object[], more: object = {}) =>
    response.write(`data: ${JSON.stringify({ ...about, object: 'chat.completion.chunk', choices, ...more })}\n\n`);
  const delta = (value: object, finish_reason: string | null = null) =>
    send([{ index: 0, delta: value, logprobs: null, finish_reason }]);
  delta({ role: 'assistant', content: calls ? null : '' });
  if (calls) delta({ tool_calls: calls.map((call, index) => ({ index, ...call })) });
  else for (const content of said) delta({ content });
  delta({}, finish);
  if ((body['stream_options'] as { readonly include_usage?: boolean } | undefined)?.include_usage) send([], { usage });
  response.end('data: [DONE]\n\n');
}
