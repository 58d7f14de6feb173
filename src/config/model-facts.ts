import type { CapName } from '#wire';

/** Wires that a model's API may support beside chat completions. */
export const NATIVE_WIRES = ['messages', 'responses'] as const;
export type NativeWireName = (typeof NATIVE_WIRES)[number];

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
