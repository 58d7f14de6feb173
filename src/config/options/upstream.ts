import { whole } from '../option.ts';
import { HOUR_MS, KIB, MIB, MINUTE_MS } from '../units.ts';

/** `[upstream]`: limits of calls to providers. */
export const UPSTREAM = {
  head_timeout_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: 5 * MINUTE_MS,
    meaning:
      'Longest wait for the head of a reply. An answer that is not streamed has its head only when the provider has finished.',
  }),
  idle_timeout_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: 2 * MINUTE_MS,
    meaning: 'Longest silence inside a reply. It ends the stream of an agent, and not its task.',
  }),
  call_timeout_ms: whole({
    min: 100,
    max: 24 * HOUR_MS,
    default: 10 * MINUTE_MS,
    meaning: 'Longest duration of a whole call, all attempts together.',
  }),
  attempts_max: whole({ min: 1, max: 3, default: 3, meaning: 'Most providers that one call is tried at.' }),
  reply_bytes_max: whole({
    min: KIB,
    max: 1024 * MIB,
    default: 8 * MIB,
    meaning: 'Largest reply of a provider, or event of one that is streamed.',
  }),
  images_reply_bytes_max: whole({
    min: KIB,
    max: 1024 * MIB,
    default: 64 * MIB,
    meaning:
      'Largest reply of a provider with images, which are in base64. Also the largest answer that is kept as a file, for repeats.',
  }),
  replies_bytes_max: whole({
    min: MIB,
    max: 64 * 1024 * MIB,
    default: 128 * MIB,
    meaning:
      'Bytes of unfinished replies above 64 KiB that are kept at once. Replies to one account, and of one provider, get a quarter; what does not fit waits up to 10 s, then fails with 503.',
  }),
  connections_max: whole({
    min: 1,
    max: 65_535,
    default: 2_048,
    meaning:
      'Most connections to one provider address for calls, and as many again for streams that only listen. One account takes at most as many as it leaves free: alone half of them.',
  }),
  price_spread_max: whole({
    min: 1,
    max: 1_000_000,
    default: 10,
    meaning:
      'How many times as dear as the operator’s own offer, or as the first choice, another provider of a model or a tool may be for calls that name no provider and no `max_price`.',
  }),
  cooldown_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'How long an offer that failed is passed over.',
  }),
};
