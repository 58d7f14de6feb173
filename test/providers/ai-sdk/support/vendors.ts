import { anthropicVendor, bedrockVendor, cohereVendor, geminiVendor } from './own-wires.ts';
import { chatVendor, responsesVendor } from './openai-wires.ts';
import { PICTURE } from './picture.ts';
import type { VendorReply, VendorRequest } from './scene.ts';

/** A model that sorts two documents, and what is known of it. */
interface Reranker {
  readonly model: string;
  /** USD for a search, or for a million tokens. */
  readonly pricing: string;
  /** What it is charged by. */
  readonly by: 'searches' | 'tokens' | 'documents';
  /** What the answer shows of usage and cost. */
  readonly usage: object;
  /** What the vendor is sent. */
  readonly sent: (documents: readonly string[]) => object;
}

/** A package of the AI SDK, and its vendor as a test plays it. */
export interface Vendor {
  readonly name: string;
  /** Default `@ai-sdk/<name>`. */
  readonly sdk?: string;
  readonly settings: (url: string) => Readonly<Record<string, string | boolean>>;
  /** Secret settings. Each has its own name as its value, with `-secret`. */
  readonly secrets?: readonly string[];
  /** Names of its models; null if the package has none of that kind. */
  readonly models: {
    readonly chat: string | null;
    readonly embed: string | null;
    readonly paint: string | null;
    /** Absent: it has none. */
    readonly rerank?: Reranker;
  };
  readonly answer: (request: VendorRequest) => VendorReply;
  /** What the vendor says of the usage of a chat beside the totals. */
  readonly says: readonly ('cached' | 'written' | 'reasoning')[];
  /** The vendor tells no tokens of embeddings. */
  readonly countsNoInputs?: true;
  /** Finds the key in a request. */
  readonly key: (headers: VendorRequest['headers']) => unknown;
  /** A chat request that shows thinking in whole replies, in streams, and with a signature. */
  readonly signs?: true;
}

const bearer = (headers: VendorRequest['headers']) => headers['authorization'] === 'Bearer apiKey-secret';
const base = (path: string) => (url: string) => ({ baseURL: `${url}${path}` });

const NO_MODELS = { chat: null, embed: null, paint: null } as const;
const picture: VendorReply = { bytes: PICTURE, type: 'image/png' };
const pictureAt = (origin: string) => `${origin}/made.png`;
const isPicture = (path: string) => path.endsWith('.png');

const togetherRanking: VendorReply = {
  json: {
    id: 'r',
    model: 'Salesforce/Llama-Rank-v1',
    results: [
      { index: 1, relevance_score: 0.9 },
      { index: 0, relevance_score: 0.1 },
    ],
    usage: { prompt_tokens: 15_000, completion_tokens: 0, total_tokens: 15_000 },
  },
};

/** Each answers that the second document comes first. */
const COHERE: Reranker = {
  model: 'rerank-v4.0-pro',
  by: 'searches',
  pricing: 'per_call = 0.002, prompt = 0, completion = 0',
  usage: { search_units: 2, cost: 0.004 },
  sent: (documents) => ({ documents, max_tokens_per_doc: 100_000 }),
};
/** It tells tokens: 15,000 for 2 USD a million. */
const TOGETHER: Reranker = {
  model: 'Salesforce/Llama-Rank-v1',
  by: 'tokens',
  pricing: 'prompt = 2, completion = 0',
  usage: { total_tokens: 15_000, cost: 0.03 },
  sent: (documents) => ({ documents, query: 'which', return_documents: false }),
};
/** It tells nothing, so the search units are those of the documents, which are far below a hundred. */
const BEDROCK: Reranker = {
  model: 'cohere.rerank-v3-5:0',
  by: 'documents',
  pricing: 'per_call = 0.002, prompt = 0, completion = 0',
  usage: { search_units: 1, cost: 0.002 },
  sent: (documents) => ({
    queries: [{ textQuery: { text: 'which' } }],
    sources: documents.map((text) => ({ inlineDocumentSource: { textDocument: { text } } })),
  }),
};

export const VENDORS: readonly Vendor[] = [
  {
    name: 'openai',
    settings: base('/v1'),
    models: { chat: 'gpt-5', embed: 'text-embedding-3-small', paint: 'gpt-image-1' },
    answer: responsesVendor,
    says: ['cached', 'reasoning'],
    key: bearer,
    signs: true,
  },
  {
    name: 'azure',
    settings: base('/openai'),
    models: { chat: 'gpt-5', embed: 'text-embedding-3-small', paint: 'gpt-image-1' },
    answer: responsesVendor,
    says: ['cached', 'reasoning'],
    key: (headers) => headers['api-key'] === 'apiKey-secret',
    signs: true,
  },
  {
    name: 'anthropic',
    settings: base('/v1'),
    models: { chat: 'claude-sonnet-4-5', embed: null, paint: null },
    answer: anthropicVendor,
    says: ['cached', 'written'],
    key: (headers) => headers['x-api-key'] === 'apiKey-secret',
    signs: true,
  },
  {
    name: 'google',
    settings: base('/v1beta'),
    models: { chat: 'gemini-2.5-flash', embed: 'gemini-embedding-001', paint: 'gemini-2.5-flash-image' },
    answer: geminiVendor,
    says: ['cached', 'reasoning'],
    countsNoInputs: true,
    key: (headers) => headers['x-goog-api-key'] === 'apiKey-secret',
    signs: true,
  },
  {
    name: 'google-vertex',
    sdk: '@ai-sdk/google-vertex/edge#createGoogleVertex',
    settings: base('/v1/publishers/google'),
    models: { chat: 'gemini-2.5-flash', embed: 'text-embedding-005', paint: 'gemini-2.5-flash-image' },
    answer: geminiVendor,
    says: ['cached', 'reasoning'],
    key: (headers) => headers['x-goog-api-key'] === 'apiKey-secret',
    signs: true,
  },
  {
    name: 'amazon-bedrock',
    settings: (url) => ({ baseURL: url, region: 'eu-central-1' }),
    secrets: ['accessKeyId', 'secretAccessKey'],
    models: {
      chat: 'anthropic.claude-sonnet-4-5-20250929-v1:0',
      embed: 'amazon.titan-embed-text-v2:0',
      paint: 'amazon.nova-canvas-v1:0',
      rerank: BEDROCK,
    },
    answer: bedrockVendor,
    says: ['cached', 'written'],
    key: ({ authorization = '' }) =>
      authorization.startsWith('AWS4-HMAC-SHA256 Credential=accessKeyId-secret/') &&
      authorization.includes('/eu-central-1/bedrock/') &&
      !authorization.includes('secretAccessKey-secret'),
    signs: true,
  },
  {
    name: 'mistral',
    settings: base('/v1'),
    models: { chat: 'magistral-small-latest', embed: 'mistral-embed', paint: null },
    answer: chatVendor({ thinking: 'parts' }),
    says: ['cached'],
    key: bearer,
  },
  {
    name: 'cohere',
    settings: base('/v2'),
    models: { chat: 'command-a-reasoning-08-2025', embed: 'embed-v4.0', paint: null, rerank: COHERE },
    answer: cohereVendor,
    says: [],
    key: bearer,
  },
  {
    name: 'xai',
    settings: base('/v1'),
    models: { chat: 'grok-4', embed: null, paint: 'grok-2-image' },
    answer: responsesVendor,
    says: ['cached', 'reasoning'],
    key: bearer,
  },
  {
    name: 'groq',
    settings: base('/openai/v1'),
    models: { chat: 'openai/gpt-oss-120b', embed: null, paint: null },
    answer: chatVendor({ thinking: 'reasoning', streamUsage: (usage) => ({ x_groq: { id: 'r', usage } }) }),
    says: ['cached', 'reasoning'],
    key: bearer,
  },
  {
    name: 'deepseek',
    settings: base(''),
    models: { chat: 'deepseek-reasoner', embed: null, paint: null },
    answer: chatVendor({
      thinking: 'reasoning_content',
      usage: {
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 120,
        prompt_cache_hit_tokens: 40,
        prompt_cache_miss_tokens: 60,
        completion_tokens_details: { reasoning_tokens: 8 },
      },
    }),
    says: ['cached', 'reasoning'],
    key: bearer,
  },
  {
    name: 'togetherai',
    settings: base('/v1'),
    models: {
      chat: 'Qwen/Qwen3-235B-A22B',
      embed: 'BAAI/bge-large-en-v1.5',
      paint: 'black-forest-labs/FLUX.1-schnell',
      rerank: TOGETHER,
    },
    answer: (request) =>
      request.path.endsWith('/rerank') ? togetherRanking : chatVendor({ thinking: 'reasoning' })(request),
    says: ['cached', 'reasoning'],
    key: bearer,
  },
  {
    name: 'fireworks',
    settings: base('/inference/v1'),
    models: {
      chat: 'accounts/fireworks/models/deepseek-v3p2',
      embed: 'nomic-ai/nomic-embed-text-v1.5',
      paint: 'accounts/fireworks/models/flux-1-schnell-fp8',
    },
    answer: (request) =>
      request.path.includes('/workflows/')
        ? { bytes: PICTURE, type: 'image/png' }
        : chatVendor({ thinking: 'reasoning_content' })(request),
    says: ['cached', 'reasoning'],
    key: bearer,
  },
  {
    name: 'openai-compatible',
    settings: (url) => ({ ...base('/v1')(url), name: 'acme', includeUsage: true, supportsStructuredOutputs: true }),
    models: { chat: 'acme-large', embed: 'acme-embed', paint: 'acme-paint' },
    answer: chatVendor({ thinking: 'reasoning_content' }),
    says: ['cached', 'reasoning'],
    key: bearer,
  },
  {
    name: 'deepinfra',
    settings: base('/v1'),
    models: { chat: 'deepseek-ai/DeepSeek-V3.2', embed: 'BAAI/bge-large-en-v1.5', paint: 'acme/flux' },
    answer: (request) =>
      request.path.includes('/inference/')
        ? { json: { images: [`data:image/png;base64,${PICTURE.toString('base64')}`] } }
        : chatVendor({ thinking: 'reasoning_content' })(request),
    says: ['cached', 'reasoning'],
    key: bearer,
  },
  // These answer with an address, or with a job that has one at its end.
  {
    name: 'fal',
    settings: base(''),
    models: { ...NO_MODELS, paint: 'fal-ai/flux' },
    answer: ({ path, origin }) =>
      isPicture(path) ? picture : { json: { images: [{ url: pictureAt(origin), content_type: 'image/png' }] } },
    says: [],
    key: (headers) => headers['authorization'] === 'Key apiKey-secret',
  },
  {
    name: 'replicate',
    settings: base('/v1'),
    secrets: ['apiToken'],
    models: { ...NO_MODELS, paint: 'acme/flux' },
    answer({ method, path, origin }) {
      if (isPicture(path)) return picture;
      const job = { id: 'p', urls: { get: `${origin}/v1/predictions/p` } };
      if (method === 'POST') return { json: { ...job, status: 'processing', output: null } };
      return { json: { ...job, status: 'succeeded', output: [pictureAt(origin)] } };
    },
    says: [],
    key: (headers) => headers['authorization'] === 'Bearer apiToken-secret',
  },
  {
    name: 'luma',
    settings: base(''),
    models: { ...NO_MODELS, paint: 'photon-1' },
    answer({ method, path, origin }) {
      if (isPicture(path)) return picture;
      const job = { id: 'g', created_at: '2026-01-01', model: 'photon-1', request: {} };
      if (method === 'POST') return { json: { ...job, state: 'queued' } };
      return { json: { ...job, state: 'completed', assets: { image: pictureAt(origin) } } };
    },
    says: [],
    key: bearer,
  },
];
