/** A price of the API, in USD. Its members depend on the kind. */
export interface Pricing {
  readonly prompt?: number | null;
  readonly completion?: number | null;
  readonly image?: number | null;
  readonly per_call?: number | null;
  readonly per_task?: number | null;
  readonly per_call_max?: number;
  readonly nested_max?: number;
  readonly tools?: Readonly<Record<string, number>>;
  readonly generation?: number;
  readonly resolutions?: Readonly<Record<string, number>>;
  readonly variants?: Readonly<Record<string, number>>;
  readonly edit?: number;
  readonly input_image?: number;
  readonly per_second?: number | Readonly<Record<string, number>>;
  readonly base?: number;
  readonly audio_multiplier?: number;
}

/**
 * The price of one tool of a service, in USD. `per_call_max` is the most that a call costs, for a tool that is charged
 * by use.
 */
export interface ToolPrice {
  readonly per_call?: string;
  readonly per_call_max?: string;
}
