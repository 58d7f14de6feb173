/* Members of a call's record that clients of other gateways require. This gateway knows few of these facts. The
   others are null. */

/** The kind of call as those clients name it. null for a kind that they don't have. */
const API_TYPES: Readonly<Record<string, string>> = { model: 'completions', image: 'image', video: 'video' };

/** Members that are the same for every call. */
const CONSTANT = {
  origin: '',
  data_region: 'global',
  is_byok: false,
  app_id: null,
  cache_discount: null,
  external_user: null,
  http_referer: null,
  moderation_latency: null,
  native_tokens_completion_images: null,
  num_fetches: null,
  num_input_audio_prompt: null,
  num_media_completion: null,
  num_search_results: null,
  preset_id: null,
  provider_responses: null,
  response_cache_source_id: null,
  router: null,
  service_tier: null,
  session_id: null,
  upstream_id: null,
  upstream_inference_cost: null,
  user_agent: null,
  web_search_engine: null,
  workspace_id: null,
} as const;

/** The members of a call's view that are needed here. */
interface ShownCall {
  readonly primitive: string | null;
  /** Units by meter. */
  readonly usage_details: Readonly<Record<string, number>>;
  readonly tokens_prompt: number;
  readonly tokens_cached: number | null;
  readonly tokens_reasoning: number | null;
  readonly finish_reason: string | null;
}

export function viewForOtherClients({ primitive, usage_details: usage, ...call }: ShownCall) {
  return {
    ...CONSTANT,
    api_type: primitive === null ? null : (API_TYPES[primitive] ?? null),
    native_finish_reason: call.finish_reason,
    native_tokens_prompt: usage['prompt'] === undefined ? null : call.tokens_prompt,
    native_tokens_cached: call.tokens_cached,
    native_tokens_reasoning: call.tokens_reasoning,
    native_tokens_completion: usage['completion'] ?? null,
    num_media_prompt: usage['image'] ?? null,
  };
}

const alwaysNull = { type: 'null', description: 'Always null here.' } as const;
const tokens = { type: ['integer', 'null'], description: 'As counted by the provider.' } as const;

export const otherClientsSchema = {
  ...Object.fromEntries(
    Object.entries(CONSTANT).map(([name, value]) => [name, value === null ? alwaysNull : { const: value }]),
  ),
  origin: { type: 'string', description: 'Always empty here.' },
  data_region: { type: 'string', description: 'Always `global` here.' },
  is_byok: { type: 'boolean', description: 'Always false here.' },
  api_type: { type: ['string', 'null'], description: '`completions`, `image` or `video`; null for tools and agents.' },
  native_finish_reason: { type: ['string', 'null'], description: 'The same as `finish_reason`.' },
  native_tokens_prompt: tokens,
  native_tokens_completion: tokens,
  native_tokens_cached: tokens,
  native_tokens_reasoning: tokens,
  num_media_prompt: { type: ['integer', 'null'], description: 'Images in the prompt.' },
};
