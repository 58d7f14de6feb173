import type { Offer, Primitive } from '../call.ts';

/** A name as a consumer wrote it, resolved to offers. */
export interface Resolved {
  /** The service's own name, without pin and suffix. */
  readonly service: string;
  readonly offers: readonly Offer[];
  /** From the suffix: `:floor` is price, `:nitro` is throughput. */
  readonly sort: 'price' | 'throughput' | null;
  /** True for the direct form `<provider_pubkey>:<name>`. */
  readonly pinned: boolean;
}

export interface Catalog {
  /** Throws GatewayError `invalid_model` (`Model not found: <name>`) or `not_found`. */
  resolve(name: string, primitive: Primitive): Resolved;
  offers(primitive?: Primitive): readonly Offer[];
  /** Replaces all offers of one source (the config file; later a provider's tunnel) in one step. */
  replace(source: string, offers: readonly Offer[]): void;
}
