import type { Kind } from '../ui/kinds.ts';
import type { Pricing } from './pricing.ts';

export type ServiceStatus = 'healthy' | 'degraded' | 'down' | 'away';

/** A service as a row of the market. */
export interface Service {
  readonly primitive: Kind;
  readonly name: string;
  readonly display_name: string;
  readonly description: string;
  readonly status: ServiceStatus;
  /** 0 to 1, of the last hour. */
  readonly uptime: number | null;
  readonly requests: number;
  readonly listed_since: string;
  readonly input_modalities: readonly string[];
  readonly output_modalities: readonly string[];
  readonly context_length: number | null;
  readonly max_output_tokens: number | null;
  readonly resolutions: readonly string[];
  readonly durations: readonly string[];
  readonly aspect_ratios: readonly string[];
  readonly formats: readonly string[];
  /** Beside those that every service of the kind takes. */
  readonly supported_parameters: readonly string[];
  /** Of the cheapest provider. */
  readonly pricing: Pricing;
  /** USD of a typical use. */
  readonly typical_usd: number;
  /** The length of the video that `typical_usd` is the price of. */
  readonly typical_seconds: number | null;
  readonly providers: readonly { readonly id: string; readonly name: string }[];
}
