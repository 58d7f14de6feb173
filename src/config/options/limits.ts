import { whole } from '../option.ts';
import { HOUR_MS, KIB, MIB, MINUTE_MS } from '../units.ts';

/** Options of `[limits]`: what callers may ask for. */
export const LIMIT_OPTIONS = {
  'limits.requests_per_minute': whole({
    min: 1,
    max: 10_000_000,
    default: 60,
    meaning: 'Steady rate of requests of one API key.',
  }),
  'limits.burst': whole({
    min: 0,
    max: 10_000_000,
    default: 20,
    meaning: 'Requests that a key may send at once on top of the steady rate. Clients are told the steady rate.',
  }),
  'limits.development_requests_per_minute': whole({
    min: 1,
    max: 10_000_000,
    default: 6_000,
    meaning: 'Steady rate of requests of a development key.',
  }),
  'limits.anonymous_requests_per_minute': whole({
    min: 1,
    max: 10_000_000,
    default: 30,
    meaning: 'Steady rate of strangers from one network.',
  }),
  'limits.tokens_per_minute': whole({
    min: 1,
    max: 1e12,
    default: 10_000_000,
    meaning: 'Tokens of one API key per minute, prompt and completion.',
  }),
  'limits.chat_body_bytes_max': whole({
    min: KIB,
    max: 256 * MIB,
    default: 10 * MIB,
    meaning: 'Largest body of a chat request.',
  }),
  'limits.body_bytes_max': whole({
    min: KIB,
    max: 256 * MIB,
    default: MIB,
    meaning: 'Largest body of any other request.',
  }),
  'limits.messages_max': whole({ min: 1, max: 100_000, default: 2_048, meaning: 'Most messages of one chat request.' }),
  'limits.json_depth_max': whole({ min: 8, max: 512, default: 64, meaning: 'Deepest nesting of a JSON body.' }),
  'limits.json_keys_max': whole({
    min: 100,
    max: 1_000_000,
    default: 10_000,
    meaning: 'Most keys of a JSON body. For each there may be 20 elements of arrays, and 64 bytes of names.',
  }),
  'limits.listens_max': whole({
    min: 1,
    max: 10_000,
    default: 128,
    meaning:
      'Most streams that the clients of one account listen on at one gateway, for changes (MCP) and to tasks that go on (A2A) together.',
  }),
  'limits.kept_replies_bytes_max': whole({
    min: 2 * MIB,
    max: 1024 * 1024 * MIB,
    default: 32 * MIB,
    meaning:
      'About how many bytes of replies are kept for one account, to be repeated to whoever sends a request with its idempotency key again. Beyond it the oldest go.',
  }),
  'limits.request_timeout_ms': whole({
    min: 100,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning: 'Time that a client has to send its whole request.',
  }),
  'limits.client_stall_ms': whole({
    min: 100,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning: 'How long a client may take nothing of an answer that waits for it; then it counts as gone.',
  }),
  'limits.drain_on_shutdown_ms': whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'Time that running calls have to finish when the gateway stops.',
  }),
};
