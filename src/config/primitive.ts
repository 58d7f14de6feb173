import type { MicroUsd } from '#billing/amounts';

/** The kinds of services. Peers: each is called through the same pipeline and the same billing. */
export const PRIMITIVES = ['model', 'tool', 'agent', 'image', 'video'] as const;
export type Primitive = (typeof PRIMITIVES)[number];

export interface AgentFacts {
  /** Path of the agent card below the agent's own address. */
  readonly cardPath: string;
  /** Path below that address that JSON-RPC is posted to; null where the card says it. */
  readonly rpcPath: string | null;
  /** Whether the price of a call is for each message, or for all messages of a task. */
  readonly chargedPer: 'message' | 'task';
  /**
   * The most that the agent may spend in the consumer's name on calls of its own, where the consumer names no budget;
   * 0 where it may not spend.
   */
  readonly nestedMax: MicroUsd;
}

/** APIs of images: OpenAI's, a gateway's own as tollgate has it, or OpenRouter's. */
export type ImageWireName = 'openai' | 'tollgate' | 'openrouter';

/** How the API of an image service is asked. */
interface ImageApi {
  readonly wire: ImageWireName;
  /** It edits images, too. */
  readonly edits: boolean;
  /** The form that an edit is sent in. */
  readonly body: 'multipart' | 'json';
}

/** Abilities of an image or video service. Lists are empty where the provider says nothing. */
export interface MediaFacts {
  /** The model's name at the upstream API. */
  readonly upstreamModel: string;
  readonly supportedParams: readonly string[];
  readonly aspectRatios: readonly string[];
  /** File formats of images. */
  readonly formats: readonly string[];
  /** Resolution tiers. */
  readonly resolutions: readonly string[];
  /** Lengths of videos, such as `5s`. */
  readonly durations: readonly string[];
  /** Its prices are told, and not bound by quotes. Absent: they are. */
  readonly unquoted?: true;
  /** Of a video service: it takes files, and no addresses of them. Absent: it takes both. */
  readonly filesOnly?: true;
  /** Of an image service. Absent: it edits nothing. */
  readonly imageApi?: ImageApi;
}
