import type { Option, ValueOf } from './config-option.ts';
import { SERVER_OPTIONS } from './config-options/server.ts';
import { ACCESS_OPTIONS } from './config-options/access.ts';
import { TUNNEL_OPTIONS } from './config-options/tunnel.ts';
import { STORE_OPTIONS } from './config-options/stores.ts';
import { LIMIT_OPTIONS } from './config-options/limits.ts';
import { BILLING_OPTIONS } from './config-options/billing.ts';
import { PROTOCOL_OPTIONS } from './config-options/protocols.ts';
import { UPSTREAM_OPTIONS } from './config-options/upstream.ts';
import { PAYMENT_OPTIONS } from './config-options/payments.ts';

/** Every option outside `[[models]]` by its `section.key`, with its default. docs/configuration.md repeats this table and a test compares them. */
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
