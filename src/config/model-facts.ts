import type { CapName } from '#wire';

/** Wires that a model's API may speak beside chat completions. */
export const NATIVE_WIRES = ['messages', 'responses'] as const;
export type NativeWireName = (typeof NATIVE_WIRES)[number];

export interface ModelFacts {
  /** The model's name at the upstream API. */
  readonly upstreamModel: string;
  readonly contextLength: number;
  /** Most completion tokens the provider declares; null when it declares none. */
  readonly maxOutputTokens: number | null;
  readonly inputModalities: readonly string[];
  readonly outputModalities: readonly string[];
  /**
   * The name by which the upstream API takes the cap of a completion; `none`: it takes no cap. Absent where the
   * provider says nothing of it.
   */
  readonly cap?: CapName;
  /** Wires beside chat that the upstream API speaks itself. Absent where it speaks none. */
  readonly wires?: readonly NativeWireName[];
  /**
   * Request fields beyond the published ones that the upstream API gets. Absent where the provider says nothing of it.
   */
  readonly forward?: 'all' | readonly string[];
  /** Reasoning that the model does without showing it. Absent where the provider declares none. */
  readonly hiddenReasoning?: HiddenReasoning;
}

/** Tokens of one answer. */
interface HiddenReasoning {
  /** The most that a claim of usage may hold beyond the tokens that were shown. */
  readonly max: number;
  /** Charged for it where an answer was cut before its usage came. */
  readonly usual: number;
}
