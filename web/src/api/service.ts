import type { Kind } from '../ui/kinds.ts';
import type { Pricing } from './pricing.ts';

export type ServiceStatus = 'healthy' | 'degraded' | 'down' | 'away';

/** Whether at least one of its providers can be called now. */
export const isCallable = ({ status }: Pick<Service, 'status'>): boolean =>
  status === 'healthy' || status === 'degraded';

/** A service as a row of the marketplace. */
export interface Service {
  readonly primitive: Kind;
  readonly name: string;
  readonly display_name: string;
  readonly description: string;
  readonly status: ServiceStatus;
  /** 0 to 1, for the last hour. */
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
  /** Parameters in addition to those that every service of the kind accepts. */
  readonly supported_parameters: readonly string[];
  /** The price of the cheapest provider. */
  readonly pricing: Pricing;
  /** USD for a typical use. */
  readonly typical_usd: number;
  /** The length in seconds of the video that `typical_usd` is for. null for other kinds. */
  readonly typical_seconds: number | null;
  readonly providers: readonly { readonly id: string; readonly name: string }[];
}
