import { anthropicVendor, bedrockVendor, cohereVendor, geminiVendor } from './own-wires.ts';
import { chatVendor, responsesVendor } from './openai-wires.ts';
import { PICTURE } from './picture.ts';
import type { VendorReply, VendorRequest } from './scene.ts';

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
    readonly chat: string;
    readonly embed: string | null;
    readonly paint: string | null;
    /** Absent: it has none. */
    readonly rerank?: string;
  };
  readonly answer: (request: VendorRequest) => VendorReply;
  /** What the vendor says of its usage beside the totals. */
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
    models: { chat: 'command-a-reasoning-08-2025', embed: 'embed-v4.0', paint: null, rerank: 'rerank-v4.0-pro' },
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
    },
    answer: chatVendor({ thinking: 'reasoning' }),
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
];
