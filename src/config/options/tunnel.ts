import { textList, whole } from '../option.ts';
import { HOUR_MS, MINUTE_MS } from '../units.ts';

/** `[tunnel]`: providers that dial in. */
export const TUNNEL = {
  providers: textList({
    takes: 'list of public keys or account ids',
    meaning: 'Who may dial in as a provider. Empty: everybody who signs in.',
    fault: (value) => (/^[!-~]{1,200}$/.test(value) ? null : 'is not a public key or an account id'),
    max: 10_000,
  }),
  silence_ms: whole({
    min: 1_000,
    max: HOUR_MS,
    default: 15_000,
    meaning: "How long a provider's proxy may be silent before it counts as gone.",
  }),
  grace_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'How long the services of a provider that went away stay listed. Other providers are preferred meanwhile.',
  }),
  wait_ms: whole({
    min: 0,
    max: MINUTE_MS,
    default: 3_000,
    meaning: 'How long a call that nobody else can serve waits for its provider to dial in again.',
  }),
  services_max: whole({ min: 1, max: 10_000, default: 1_000, meaning: 'Most services of one provider.' }),
  price_notice_ms: whole({
    min: 0,
    max: 24 * HOUR_MS,
    default: 10 * MINUTE_MS,
    meaning:
      'How long a price of a provider that more than doubled has to be accepted by each call, with `max_cost` or `max_price`. 0: not at all.',
  }),
  connections_per_address_max: whole({
    min: 1,
    max: 10_000,
    default: 1_000,
    meaning:
      'Most proxies from one IPv4 address or IPv6 /64 network, so that one client cannot take the places of all.',
  }),
};
