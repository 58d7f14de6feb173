import type { AGENT_BLOCK } from './blocks/agent-block.ts';
import type { HttpTarget, ServiceOf } from './blocks/block.ts';
import type { IMAGE_BLOCK } from './blocks/image-block.ts';
import type { MODEL_BLOCK } from './blocks/model-block.ts';
import type { SdkTarget } from './blocks/sdk-options.ts';
import type { CommandTarget, TOOL_BLOCK } from './blocks/tool-block.ts';
import type { VIDEO_BLOCK } from './blocks/video-block.ts';

/**
 * An offer of a provider, as its file and its registration declare it. It has no secrets, and does not say where the
 * service runs. Its fields are defined by the rows of the options in `blocks/`. `variants` has the rates of parts with
 * their own price: by the name of a tool, an image tier, or a video resolution, with `+audio` for videos with sound.
 */
export type Service = ModelService | ToolService | AgentService | ImageService | VideoService;
export type ModelService = ServiceOf<typeof MODEL_BLOCK>;
export type ToolService = ServiceOf<typeof TOOL_BLOCK>;
export type AgentService = ServiceOf<typeof AGENT_BLOCK>;
export type ImageService = ServiceOf<typeof IMAGE_BLOCK>;
type VideoService = ServiceOf<typeof VIDEO_BLOCK>;

export type ModelFacts = ModelService['model'];
export type AgentFacts = AgentService['agent'];
/** Facts of an image service, which may have those of a video service instead. */
export type MediaFacts = ImageService['media'] & Partial<VideoService['media']>;

/** The place where a service runs. Only the machine that reads the file knows it. */
export type ServiceTarget = HttpTarget | SdkTarget | CommandTarget;
export type { CommandTarget, HttpTarget, SdkTarget };

/** One `[[models]]`, `[[tools]]`, `[[agents]]`, `[[images]]` or `[[videos]]` block, validated. */
export interface ServiceConfig {
  readonly service: Service;
  readonly target: ServiceTarget;
  /** It was not written in a block of its own: it is a model of `[[providers]]`, at the list price. */
  readonly listed?: true;
  /** A name that it had in an earlier version. It is still called by it, and listed only by its own. */
  readonly formerName?: string;
}

/** The context that a provider declared. null if it declared none. */
export const contextDeclared = ({ contextLength, contextAssumed }: ModelFacts): number | null =>
  contextAssumed ? null : contextLength;
