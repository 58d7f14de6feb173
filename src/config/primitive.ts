import type { MicroUsd } from '#billing/amounts';

/** The kinds of services. They are peers, because all use the same pipeline and the same billing. */
export const PRIMITIVES = ['model', 'tool', 'agent', 'image', 'video'] as const;
export type Primitive = (typeof PRIMITIVES)[number];

export interface AgentFacts {
  /** Path of the agent card below the agent's own address. */
  readonly cardPath: string;
  /** The path for JSON-RPC requests below the agent's address. null if the card says it. */
  readonly rpcPath: string | null;
  /** Whether the price of a call covers one message, or all messages of a task. */
  readonly chargedPer: 'message' | 'task';
  /**
   * The most that the agent may spend in the consumer's name on its own calls, if the consumer names no budget. 0: it
   * may not spend anything.
   */
  readonly nestedMax: MicroUsd;
}

/** Image APIs: OpenAI's, that of a tollgate gateway, or OpenRouter's. */
export type ImageWireName = 'openai' | 'tollgate' | 'openrouter';

/** The properties of an image service's API. */
interface ImageApi {
  readonly wire: ImageWireName;
  /** Whether it also edits images. */
  readonly edits: boolean;
  /** The format of the request for an edit. */
  readonly body: 'multipart' | 'json';
}

/** Capabilities of an image or video service. A list is empty if the provider does not declare it. */
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
  /** True if quotes show its prices, but do not bind it. Absent: quotes are binding. */
  readonly unquoted?: true;
  /** For a video service: it accepts files, but not their URLs. Absent: it accepts both. */
  readonly filesOnly?: true;
  /** For an image service. Absent: OpenAI's wire, without edits. */
  readonly imageApi?: ImageApi;
}
