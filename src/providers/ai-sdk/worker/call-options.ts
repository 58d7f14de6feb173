import type { JsonObject } from '#wire';
import type {
  JSONObject,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ToolChoice,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { RequestFault } from './fault.ts';
import { isRecord, listOf, numberOf, stringOf } from './json.ts';
import { type Options, optionsOf } from './provider-options.ts';
import { toPrompt } from './prompt.ts';

interface ChatCall {
  readonly options: LanguageModelV4CallOptions;
  readonly warnings: SharedV4Warning[];
  readonly logprobs: boolean;
}

/**
 * Maps the body of a chat request. `provider`: the provider of the model in the words of its package, such as
 * `openai.responses`. Throws RequestFault for what would make another answer than the one that was asked for.
 */
export function toChatCall(body: JsonObject, provider: string): ChatCall {
  refuseOtherAnswers(body);
  const { tools, tool_choice: choice } = body;
  const warnings: SharedV4Warning[] = [];
  const own = ownOptions(body, provider, warnings);
  const functions = listOf(tools).map(toFunctionTool);
  const options: LanguageModelV4CallOptions = {
    prompt: toPrompt(body['messages']),
    ...defined({
      maxOutputTokens: numberOf(body['max_completion_tokens']) ?? numberOf(body['max_tokens']),
      temperature: numberOf(body['temperature']),
      topP: numberOf(body['top_p']),
      topK: numberOf(body['top_k']),
      presencePenalty: numberOf(body['presence_penalty']),
      frequencyPenalty: numberOf(body['frequency_penalty']),
      seed: numberOf(body['seed']),
      stopSequences: stopsOf(body['stop']),
      responseFormat: responseFormatOf(body['response_format']),
      reasoning: effortOf(body),
      toolChoice: functions.length === 0 ? undefined : toToolChoice(choice),
    }),
    ...(functions.length === 0 ? {} : { tools: functions }),
    ...(Object.keys(own).length === 0 ? {} : { providerOptions: own }),
  };
  return { options, warnings, logprobs: body['logprobs'] === true };
}

/** The same object without its undefined members, because a package may tell the two apart. */
function defined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

function refuseOtherAnswers(body: JsonObject): void {
  const refused: readonly [string, boolean, string][] = [
    ['n', (numberOf(body['n']) ?? 1) > 1, 'makes one completion'],
    ['modalities', listOf(body['modalities']).includes('audio'), 'answers with no audio'],
    ['functions', listOf(body['functions']).length > 0, 'has no functions beside tools. Send them as tools'],
  ];
  for (const [param, isPresent, why] of refused)
    if (isPresent) throw new RequestFault(`This model is called through the AI SDK, which ${why}`, { param });
}

function stopsOf(stop: unknown): string[] | undefined {
  const stops = typeof stop === 'string' ? [stop] : listOf(stop).filter((one) => typeof one === 'string');
  return stops.length === 0 ? undefined : stops;
}

function responseFormatOf(format: unknown): LanguageModelV4CallOptions['responseFormat'] {
  if (!isRecord(format)) return undefined;
  const { type, json_schema: jsonSchema } = format;
  if (type === 'text') return { type };
  if (type === 'json_object') return { type: 'json' };
  if (type !== 'json_schema' || !isRecord(jsonSchema))
    throw new RequestFault('response_format.type must be text, json_object or json_schema', {
      param: 'response_format',
    });
  const { schema, name, description } = jsonSchema;
  return {
    type: 'json',
    ...defined({ schema: schema as JSONObject | undefined, name: stringOf(name), description: stringOf(description) }),
  };
}

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

function effortOf({ reasoning_effort: effort, reasoning }: JsonObject): LanguageModelV4CallOptions['reasoning'] {
  const level = effort ?? (isRecord(reasoning) ? reasoning['effort'] : undefined);
  if (level === undefined || level === null) return undefined;
  const known = EFFORTS.find((one) => one === level);
  if (known === undefined)
    throw new RequestFault(`reasoning_effort must be one of ${EFFORTS.join(', ')}`, { param: 'reasoning_effort' });
  return known;
}

function toFunctionTool(tool: unknown, index: number): LanguageModelV4FunctionTool {
  const { type, function: fn } = isRecord(tool) ? tool : ({} as JsonObject);
  const { name, description, parameters, strict } = isRecord(fn) ? fn : ({} as JsonObject);
  if (type !== 'function' || typeof name !== 'string')
    throw new RequestFault(`tools[${index}] must be a function with a name: the AI SDK has no tools of another type`, {
      param: `tools[${index}]`,
    });
  return {
    type,
    name,
    inputSchema: isRecord(parameters) ? parameters : { type: 'object', properties: {} },
    ...defined({ description: stringOf(description), strict: typeof strict === 'boolean' ? strict : undefined }),
  };
}

function toToolChoice(choice: unknown): LanguageModelV4ToolChoice | undefined {
  if (choice === undefined || choice === null) return undefined;
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { type: choice };
  if (choice === 'any') return { type: 'required' };
  const name = isRecord(choice) && isRecord(choice['function']) ? choice['function']['name'] : undefined;
  if (typeof name !== 'string')
    throw new RequestFault('tool_choice must be "auto", "none", "required" or a function with its name', {
      param: 'tool_choice',
    });
  return { type: 'tool', toolName: name };
}

/**
 * Fields of the chat API for which the AI SDK has no setting, by the names that packages with OpenAI's options give
 * them.
 */
const OPENAI_OPTIONS: Readonly<Record<string, string>> = {
  logit_bias: 'logitBias',
  parallel_tool_calls: 'parallelToolCalls',
  prediction: 'prediction',
  prompt_cache_key: 'promptCacheKey',
  prompt_cache_retention: 'promptCacheRetention',
  safety_identifier: 'safetyIdentifier',
  service_tier: 'serviceTier',
  store: 'store',
  user: 'user',
  verbosity: 'textVerbosity',
};

/** Providers whose packages take OpenAI's options, and the name under which they take them. */
const TAKES_OPENAI_OPTIONS = /^(?:openai|azure)(?:[.-]|$)/;

/** Other providers whose packages take a service tier, and the name of their options. */
const TIER_OPTIONS: readonly (readonly [provider: RegExp, options: string])[] = [
  [/^google\.generative-ai/, 'google'],
  [/^groq(?:\.|$)/, 'groq'],
  [/^xai(?:\.|$)/, 'xai'],
  [/^amazon-bedrock(?:\.|$)/, 'bedrock'],
];

/** Service tiers that every call is served in. */
const USUAL_TIERS: ReadonlySet<unknown> = new Set(['auto', 'default', 'standard', 'on_demand']);

/** All fields that are mapped, or that are of no use behind this program. */
const MAPPED: ReadonlySet<string> = new Set(
  `model messages stream stream_options n modalities functions function_call tools tool_choice max_tokens
   max_completion_tokens temperature top_p top_k presence_penalty frequency_penalty seed stop response_format
   reasoning reasoning_effort provider_options`.split(/\s+/),
);

/** Options by the name of the provider: those of the request, and fields of chat that only some packages take. */
function ownOptions(body: JsonObject, provider: string, warnings: SharedV4Warning[]): Options {
  const own = optionsOf(body['provider_options'], 'provider_options') ?? {};
  const openai: Record<string, unknown> = {};
  const takes = TAKES_OPENAI_OPTIONS.test(provider);
  let tier: unknown;
  for (const [field, value] of Object.entries(body)) {
    if (MAPPED.has(field) || value === null || value === undefined) continue;
    const name = OPENAI_OPTIONS[field];
    if (takes && name !== undefined) openai[name] = value;
    else if (field === 'service_tier' && !USUAL_TIERS.has(value)) tier = value;
    else if (takes && field === 'logprobs')
      openai['logprobs'] = value === true ? (body['top_logprobs'] ?? true) : false;
    else if (!(takes && field === 'top_logprobs')) warnings.push({ type: 'unsupported', feature: field });
  }
  if (tier !== undefined) return withTier(own, provider, tier);
  if (Object.keys(openai).length === 0) return own;
  // A consumer's own options do not replace the tier, which has a price.
  const { serviceTier } = openai;
  return {
    ...own,
    openai: {
      ...(openai as JSONObject),
      ...own['openai'],
      ...(serviceTier === undefined ? {} : { serviceTier: serviceTier as string }),
    },
  };
}

/** The options with a service tier. A call that asks for one has its price, so it is not served in another. */
function withTier(own: Options, provider: string, tier: unknown): Options {
  const name = TIER_OPTIONS.find(([pattern]) => pattern.test(provider))?.[1];
  if (name === undefined || typeof tier !== 'string')
    throw new RequestFault('This model is called through a package of the AI SDK that takes no service tier', {
      param: 'service_tier',
    });
  return { ...own, [name]: { ...own[name], serviceTier: tier } };
}
