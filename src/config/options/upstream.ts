import { whole } from '../option.ts';
import { HOUR_MS, KIB, MIB, MINUTE_MS } from '../units.ts';

/** `[upstream]`: limits of calls to providers. */
export const UPSTREAM = {
  head_timeout_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: 5 * MINUTE_MS,
    meaning:
      'Longest wait for the status and headers of a reply. If an answer is not streamed, they come only when the provider has finished.',
  }),
  idle_timeout_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: 2 * MINUTE_MS,
    meaning: 'Longest silence inside a reply. A longer one ends the stream of an agent, but not its task.',
  }),
  call_timeout_ms: whole({
    min: 100,
    max: 24 * HOUR_MS,
    default: 10 * MINUTE_MS,
    meaning: 'Longest duration of a call, with all its attempts.',
  }),
  attempts_max: whole({
    min: 1,
    max: 3,
    default: 3,
    meaning: 'Largest number of providers that are tried for one call.',
  }),
  reply_bytes_max: whole({
    min: KIB,
    max: 1024 * MIB,
    default: 8 * MIB,
    meaning:
      'Largest reply of a provider. For a streamed reply: its largest event. Files in the answer of an agent do not count.',
  }),
  images_reply_bytes_max: whole({
    min: KIB,
    max: 1024 * MIB,
    default: 64 * MIB,
    meaning:
      'Largest reply of a provider with images, which are in base64, and largest answer of an agent with its files. For a stream of an agent: its largest event. Also the largest answer that is kept as a file for repeats of its request.',
  }),
  replies_bytes_max: whole({
    min: MIB,
    max: 64 * 1024 * MIB,
    default: 128 * MIB,
    meaning:
      'Memory in bytes for unfinished replies above 64 KiB. All replies to one account, or of one provider, get at most a quarter. A reply that does not fit waits up to 10 s, then its call fails with 503.',
  }),
  connections_max: whole({
    min: 1,
    max: 65_535,
    default: 2_048,
    meaning:
      'Largest number of connections to one provider address for calls, and the same number for streams that only listen. An account must leave as many free as it uses: if it is the only one, it gets half of them.',
  }),
  price_spread_max: whole({
    min: 1,
    max: 1_000_000,
    default: 10,
    meaning:
      'How many times the price of the operator’s own offer, or of the first choice, another provider of a model or a tool may cost. It applies to calls that name neither a provider nor `max_price`.',
  }),
  cooldown_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'How long an offer is not used after it failed, if there are others.',
  }),
};
