/** Prices as the API has them, in USD. Which members there are depends on the kind. */
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

/** The price of one tool of a service, in USD. A tool that is charged by its use has the most that a call costs. */
export interface ToolPrice {
  readonly per_call?: string;
  readonly per_call_max?: string;
}
