import type { Option, ValueOf } from './option.ts';
import { SERVER_OPTIONS } from './options/server.ts';
import { ACCESS_OPTIONS } from './options/access.ts';
import { TUNNEL_OPTIONS } from './options/tunnel.ts';
import { STORE_OPTIONS } from './options/stores.ts';
import { LIMIT_OPTIONS } from './options/limits.ts';
import { BILLING_OPTIONS } from './options/billing.ts';
import { PROTOCOL_OPTIONS } from './options/protocols.ts';
import { UPSTREAM_OPTIONS } from './options/upstream.ts';
import { PAYMENT_OPTIONS } from './options/payments.ts';

/**
 * Every option outside `[[models]]` by its `section.key`, with its default. docs/configuration.md repeats this
 * table and a test compares them.
 */
export const OPTIONS = {
  ...SERVER_OPTIONS,
  ...ACCESS_OPTIONS,
  ...TUNNEL_OPTIONS,
  ...STORE_OPTIONS,
  ...LIMIT_OPTIONS,
  ...BILLING_OPTIONS,
  ...PROTOCOL_OPTIONS,
  ...UPSTREAM_OPTIONS,
  ...PAYMENT_OPTIONS,
} as const satisfies Record<`${string}.${string}`, Option<unknown>>;

export type OptionKey = keyof typeof OPTIONS;

/** The values of all options by their keys. */
export type OptionValues = { readonly [K in OptionKey]: ValueOf<(typeof OPTIONS)[K]> };
