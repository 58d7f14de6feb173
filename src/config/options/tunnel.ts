import { textList, whole } from '../option.ts';
import { HOUR_MS, MINUTE_MS } from '../units.ts';

const BASE58 = '[1-9A-HJ-NP-Za-km-z]';
/** Ids of a provider. The name of a provider is not one of them, so it would admit nobody. */
const PROVIDER = new RegExp(
  [
    // A public key, or the account of a Solana wallet, with or without its network.
    `(?:solana:(?:${BASE58}{32}:)?)?${BASE58}{32,44}`,
    // The same of an EVM wallet.
    String.raw`(?:eip155:(?:\d{1,32}:)?)?0x[0-9a-fA-F]{40}`,
    // Accounts without a wallet.
    'tollgate:local:[a-z0-9-]{1,64}',
    'oauth:[-_a-z0-9]{1,32}:[-.%a-zA-Z0-9]{1,64}',
  ]
    .map((form) => `^${form}$`)
    .join('|'),
);

/** `[tunnel]`: providers that dial in. */
export const TUNNEL = {
  providers: textList({
    takes: 'list of public keys or account ids',
    meaning: 'Who may connect as a provider. If the list is empty, everybody who signs in may.',
    fault: (value) => (PROVIDER.test(value) ? null : 'is not a public key or an account id'),
    max: 10_000,
  }),
  silence_ms: whole({
    min: 1_000,
    max: HOUR_MS,
    default: 15_000,
    meaning: "How long a provider's proxy may send nothing before it counts as gone.",
  }),
  grace_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning:
      'How long the services of a provider that disconnected stay listed. During this time, other providers are preferred.',
  }),
  wait_ms: whole({
    min: 0,
    max: MINUTE_MS,
    default: 3_000,
    meaning: 'How long a call that no other provider can serve waits for its provider to connect again.',
  }),
  services_max: whole({ min: 1, max: 10_000, default: 1_000, meaning: 'Largest number of services of one provider.' }),
  price_notice_ms: whole({
    min: 0,
    max: 24 * HOUR_MS,
    default: 10 * MINUTE_MS,
    meaning:
      'After a provider more than doubles a price, calls must accept the new price with `max_cost` or `max_price` for this time. With 0, they never need to.',
  }),
  connections_per_address_max: whole({
    min: 1,
    max: 10_000,
    default: 1_000,
    meaning:
      'Largest number of proxies from one IPv4 address or IPv6 /64 network, so that one client cannot use up all connections.',
  }),
};
