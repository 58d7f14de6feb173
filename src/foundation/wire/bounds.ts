import type { JsonLimits } from './json/json-guard.ts';

/** The limits for one kind of JSON that others send. A text beyond them is refused before a value is built. */
export interface Bound extends JsonLimits {
  readonly jsonElementsMax: number;
  /** The row of docs/reference/bounds.md: the text and its sender. */
  readonly label: string;
  /** The bound of its bytes, if that is not `bytesMax`. */
  readonly bytesBy?: string;
}

const REPLY = 'upstream.reply_bytes_max';
const KIB = 1024;
const MIB = 1024 * 1024;

/**
 * All bounds of foreign JSON that no setting has; docs/reference/bounds.md shows them. Up to 20,000 keys and 200,000
 * elements are built at once, which takes 20 ms at most. Kinds with more are read in pieces, or in a thread, if they
 * are large.
 */
export const BOUNDS = {
  reply: {
    label: 'The reply of a chat model in one piece, if it is small or the gateway itself acts on it',
    bytesBy: REPLY,
    jsonDepthMax: 128,
    jsonKeysMax: 20_000,
    jsonElementsMax: 200_000,
    repairText: true,
  },
  largeReply: {
    // High, because log probabilities alone have a dozen keys for each token.
    label: 'The same, above 64 KiB: it is read in a thread',
    bytesBy: REPLY,
    jsonDepthMax: 128,
    jsonKeysMax: 500_000,
    jsonElementsMax: 10_000_000,
    repairText: true,
  },
  chatEvent: {
    label: 'An event of a chat stream',
    bytesBy: 'a line of at most 1 MiB',
    jsonDepthMax: 128,
    jsonKeysMax: 10_000,
    jsonElementsMax: 100_000,
    repairText: true,
  },
  nativeEvent: {
    // The last event of a response repeats the whole response, and the request.
    label: 'An event of a stream in another API for chat models, if the provider speaks that API',
    bytesMax: 8 * MIB,
    denseBytesMax: 2 * MIB,
    jsonDepthMax: 128,
    jsonKeysMax: 20_000,
    jsonElementsMax: 200_000,
    repairText: true,
  },
  embeddings: {
    label: 'The usage of a reply with embeddings, which pass as they came',
    bytesMax: 4 * KIB,
    jsonDepthMax: 32,
    jsonKeysMax: 1_000,
    jsonElementsMax: 4_096,
  },
  embeddingsForGemini: {
    label: 'A reply with embeddings for a client of the Gemini API, which is written anew',
    bytesBy: REPLY,
    jsonDepthMax: 16,
    jsonKeysMax: 20_000,
    jsonElementsMax: 10_000_000,
  },
  rerank: {
    label: 'The reply of a model that reranks',
    bytesBy: REPLY,
    jsonDepthMax: 16,
    jsonKeysMax: 20_000,
    jsonElementsMax: 200_000,
  },
  moderation: {
    label: 'The reply of a model that moderates',
    bytesMax: 4 * MIB,
    jsonDepthMax: 16,
    jsonKeysMax: 100_000,
    jsonElementsMax: 200_000,
  },
  speechEvent: {
    label: 'An event of a stream with speech, or an error instead of speech',
    bytesMax: 8 * MIB,
    denseBytesMax: MIB,
    jsonDepthMax: 16,
    jsonKeysMax: 1_000,
    jsonElementsMax: 1_000,
  },
  transcript: {
    label: 'A transcript in one piece',
    bytesMax: 8 * MIB,
    jsonDepthMax: 16,
    jsonKeysMax: 80_000,
    jsonElementsMax: 1_000_000,
  },
  transcriptEvent: {
    label: 'An event of a transcript',
    bytesMax: 2 * MIB,
    jsonDepthMax: 16,
    jsonKeysMax: 20_000,
    jsonElementsMax: 200_000,
  },
  realtimeEvent: {
    label: 'An event of a realtime session from its provider',
    bytesBy: REPLY,
    jsonDepthMax: 32,
    jsonKeysMax: 10_000,
    jsonElementsMax: 100_000,
    repairText: true,
  },
  image: {
    label: 'A reply or an event with images, without its long texts',
    bytesBy: REPLY,
    denseBytesMax: MIB,
    jsonDepthMax: 32,
    jsonKeysMax: 2_000,
    jsonElementsMax: 20_000,
    repairText: true,
  },
  video: {
    label: 'An answer about the job of a video',
    bytesMax: 256 * KIB,
    jsonDepthMax: 32,
    jsonKeysMax: 2_000,
    jsonElementsMax: 2_000,
    repairText: true,
  },
  providerError: {
    label: 'The error of a provider instead of a reply',
    bytesMax: 64 * KIB,
    jsonDepthMax: 64,
    jsonKeysMax: 10_000,
    jsonElementsMax: 100_000,
    repairText: true,
  },
  providerBatch: {
    label: 'An answer about a batch or a file at a provider',
    bytesMax: MIB,
    jsonDepthMax: 32,
    jsonKeysMax: 10_000,
    jsonElementsMax: 20_000,
  },
  fileLine: {
    label: 'A line of an uploaded file that does not fit the `limits` of requests: its `custom_id` is looked for',
    bytesBy: '`limits.chat_body_bytes_max` when it was checked',
    jsonDepthMax: 128,
    jsonKeysMax: 20_000,
    jsonElementsMax: 200_000,
  },
  batchAnswer: {
    label: 'A line of the results of a batch at a provider',
    bytesBy: REPLY,
    jsonDepthMax: 128,
    jsonKeysMax: 500_000,
    jsonElementsMax: 10_000_000,
  },
  message: {
    label: 'A message of an MCP server or an A2A agent: an answer, an event, a page of a list',
    bytesBy: '`upstream.reply_bytes_max`; a line of at most 4 MiB if the proxy of a provider runs the server',
    jsonDepthMax: 256,
    jsonKeysMax: 20_000,
    jsonElementsMax: 200_000,
  },
  card: {
    label: 'The card of an A2A agent',
    bytesMax: 256 * KIB,
    jsonDepthMax: 32,
    jsonKeysMax: 10_000,
    jsonElementsMax: 20_000,
  },
  modelList: {
    label: 'The list of models of a `[[providers]]` block',
    bytesMax: 16 * MIB,
    jsonDepthMax: 32,
    jsonKeysMax: 200_000,
    jsonElementsMax: 1_000_000,
  },
  tunnelMessage: {
    label: 'A message on the control stream of a provider that dials in, except its registration',
    bytesBy: 'a line of at most 4 MiB',
    jsonDepthMax: 16,
    jsonKeysMax: 1_000,
    jsonElementsMax: 20_000,
  },
  routerMessage: {
    label: 'A message of a gateway to the proxy of a provider, which runs it',
    bytesMax: 4 * MIB,
    jsonDepthMax: 32,
    jsonKeysMax: 400_000,
    jsonElementsMax: 800_000,
  },
  probed: {
    label: "An answer of a provider's own server to its own proxy, when a block is tried",
    bytesMax: 8 * MIB,
    jsonDepthMax: 128,
    jsonKeysMax: 100_000,
    jsonElementsMax: 1_000_000,
  },
  header: {
    label: 'A payment or the sign-in of a wallet in a header',
    bytesBy: 'the headers of a request',
    jsonDepthMax: 16,
    jsonKeysMax: 256,
    jsonElementsMax: 1_024,
  },
  issuer: {
    label: 'The metadata and the keys of an OAuth issuer',
    bytesMax: 256 * KIB,
    jsonDepthMax: 16,
    jsonKeysMax: 4_000,
    jsonElementsMax: 8_000,
  },
  clientDocument: {
    label: 'The document of a client that signs in at the gateway, and its keys',
    bytesMax: 16 * KIB,
    jsonDepthMax: 8,
    jsonKeysMax: 500,
    jsonElementsMax: 1_000,
  },
  chain: {
    label: "An answer of a chain's node or of an x402 facilitator",
    bytesMax: 64 * MIB,
    jsonDepthMax: 32,
    jsonKeysMax: 1_000_000,
    jsonElementsMax: 4_000_000,
  },
  receiver: {
    label: 'The answer of a receiver of logs. Answers of the receivers of webhooks are not read',
    bytesMax: 64 * KIB,
    jsonDepthMax: 16,
    jsonKeysMax: 1_000,
    jsonElementsMax: 1_000,
  },
} as const satisfies Readonly<Record<string, Bound>>;
