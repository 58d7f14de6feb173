import type { Kind } from '../ui/kinds.ts';

/** A value of one UTC day. `suppressed` means that the gateway hides it. */
interface DayValue {
  readonly date: string;
  readonly value: number;
  readonly suppressed?: boolean;
}

interface Sums {
  readonly requests: number;
  /** Micro-USD. */
  readonly volume: number;
  readonly tokens: number;
}

/** The market's figures over a range of days. Money is in micro-USD. */
export interface MarketFigures {
  readonly total_requests: number;
  readonly total_volume: number;
  readonly total_tokens: number;
  readonly total_active_providers: number;
  readonly total_active_services: number;
  readonly total_active_users: number;
  readonly registered_users: number;
  readonly total_failed: number;
  readonly requests_over_time: readonly DayValue[];
  readonly volume_over_time: readonly DayValue[];
  readonly providers_over_time: readonly DayValue[];
  readonly users_over_time: readonly DayValue[];
  readonly date_range: { readonly start_date: string; readonly end_date: string };
  readonly by_primitive: readonly (Sums & { readonly primitive: Kind; readonly failed: number })[];
  readonly top_services: readonly (Sums & { readonly primitive: Kind; readonly service: string })[];
  readonly other_services: Sums & { readonly services: number };
  readonly as_of: string | null;
}

/** The figures of one service over 30 days. */
export interface ServiceFigures {
  readonly requests: number;
  readonly failed: number;
  readonly volume: number;
  readonly tokens: number;
  readonly by_day: readonly {
    readonly date: string;
    readonly requests: number;
    readonly failed: number;
    readonly volume: number;
  }[];
  readonly providers: readonly ProviderFigures[];
}

export interface ProviderFigures {
  readonly provider: string;
  readonly name: string;
  readonly requests: number;
  readonly uptime: number | null;
  readonly first_byte_ms: { readonly p50: number; readonly p95: number } | null;
  readonly duration_ms: { readonly p50: number; readonly p95: number } | null;
  readonly throughput: number | null;
  readonly by_day: readonly { readonly date: string; readonly requests: number; readonly uptime: number | null }[];
  readonly prices: readonly PriceVersion[];
}

export interface PriceVersion {
  readonly from: string;
  /** USD by meter. Token prices are per 1M, all others per unit. */
  readonly pricing: Readonly<Record<string, number>>;
  readonly current: boolean;
  /** The part of the service that has this price. null is the whole service. */
  readonly of: string | null;
}
