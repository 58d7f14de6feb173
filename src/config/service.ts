import type { MicroUsd, Rates } from '#billing/amounts';
import type { CapName } from './refused-cap.ts';
import type { ImageWireName, NativeWireName } from './upstream-api.ts';

/** The kinds of services. They are peers, because all use the same pipeline and the same billing. */
export const PRIMITIVES = ['model', 'tool', 'agent', 'image', 'video'] as const;
export type Primitive = (typeof PRIMITIVES)[number];

/**
 * An offer of a provider, as its file and its registration declare it. It has no secrets, and does not say where the
 * service runs.
 */
export type Service = ModelService | ToolService | AgentService | ImageService | VideoService;

interface ServiceFields {
  readonly name: string;
  readonly displayName: string;
  readonly providerName: string;
  /** May be empty. */
  readonly description: string;
  readonly rates: Rates;
  /**
   * Rates of parts with their own price. The key is the name of a tool, an image tier, or a video resolution, with
   * `+audio` for videos with sound.
   */
  readonly variants: Readonly<Record<string, Rates>>;
}

export interface ModelService extends ServiceFields {
  readonly primitive: 'model';
  readonly model: ModelFacts;
}

export interface ToolService extends ServiceFields {
  readonly primitive: 'tool';
  /** The most that one call costs, if it is priced by use. Otherwise null. */
  readonly priceCap: MicroUsd | null;
}

export interface AgentService extends ServiceFields {
  readonly primitive: 'agent';
  /** The most that one message or task costs, if it is priced by use. Otherwise null. */
  readonly priceCap: MicroUsd | null;
  readonly agent: AgentFacts;
}

export interface ImageService extends ServiceFields {
  readonly primitive: 'image';
  readonly media: MediaFacts;
}

export interface VideoService extends ServiceFields {
  readonly primitive: 'video';
  readonly media: MediaFacts;
}

/** The place where a service runs. Only the machine that reads the file knows it. */
export type Target = HttpTarget | CommandTarget;

export interface HttpTarget {
  readonly kind: 'http';
  /** The API base of models and media, the MCP endpoint of a tool, or the address of an agent. No trailing slash. */
  readonly url: string;
  /** A secret, sent as a bearer token. null if the upstream needs none. */
  readonly apiKey: string | null;
}

/** An MCP server that speaks over its standard input and output. */
export interface CommandTarget {
  readonly kind: 'command';
  readonly command: string;
  readonly args: readonly string[];
  /** May contain secret values. */
  readonly env: Readonly<Record<string, string>>;
  /** Working directory. null: that of the proxy. */
  readonly cwd: string | null;
  /** Whether one process serves all clients. Otherwise each session has its own process. */
  readonly shared: boolean;
  readonly sessionsMax: number;
  /** How long an unused session lasts. */
  readonly sessionIdleMs: number;
  /** Whether clients may name directories of the machine on which it runs. */
  readonly roots: boolean;
}

/** One `[[models]]`, `[[tools]]`, `[[agents]]`, `[[images]]` or `[[videos]]` block, validated. */
export interface ServiceConfig {
  readonly service: Service;
  readonly target: Target;
}

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

/** The most tokens of an image for a model that does not say. Most models have fewer. */
export const IMAGE_TOKENS_MAX = 2048;

/** The context that a provider declared. null if it declared none. */
export const contextDeclared = ({ contextLength, contextAssumed }: ModelFacts): number | null =>
  contextAssumed ? null : contextLength;

export interface ModelFacts {
  /** The model's name at the upstream API. */
  readonly upstreamModel: string;
  /** Tokens of prompt and answer together. Locks are computed from it. */
  readonly contextLength: number;
  /** The provider declared no context: the number is ours, and is not shown. */
  readonly contextAssumed?: true;
  /** The most tokens of an image in a prompt. Absent: IMAGE_TOKENS_MAX. */
  readonly imageTokensMax?: number;
  /** The provider's limit of completion tokens. null if it declares none. */
  readonly maxOutputTokens: number | null;
  readonly inputModalities: readonly string[];
  readonly outputModalities: readonly string[];
  /**
   * The upstream API's name for the cap of a completion. `none`: it accepts no cap. Absent if the provider does not
   * say.
   */
  readonly cap?: CapName;
  /** Wires beside chat that the upstream API itself supports. Absent if there are no others. */
  readonly wires?: readonly NativeWireName[];
  /**
   * Further request fields, beyond the published ones, that are sent to the upstream API. Absent if the provider does
   * not say.
   */
  readonly forward?: 'all' | readonly string[];
  /** Reasoning that the model does not show. Absent if the provider declares none. */
  readonly hiddenReasoning?: HiddenReasoning;
}

/** Numbers of reasoning tokens in one answer. */
interface HiddenReasoning {
  /** The most tokens that a usage claim may have beyond the shown ones. */
  readonly max: number;
  /** Tokens to charge if an answer was cut before its usage came. */
  readonly usual: number;
}
