import { whole } from '../option.ts';
import { HOUR_MS, KIB, MIB, MINUTE_MS } from '../units.ts';

/** `[limits]`: limits of callers. */
export const LIMITS = {
  requests_per_minute: whole({
    min: 1,
    max: 10_000_000,
    default: 60,
    meaning: 'Steady rate of requests of one API key.',
  }),
  burst: whole({
    min: 0,
    max: 10_000_000,
    default: 20,
    meaning: 'Requests that a key may send at once on top of the steady rate. Clients are told the steady rate.',
  }),
  development_requests_per_minute: whole({
    min: 1,
    max: 10_000_000,
    default: 6_000,
    meaning: 'Steady rate of requests of a development key.',
  }),
  anonymous_requests_per_minute: whole({
    min: 1,
    max: 10_000_000,
    default: 30,
    meaning: 'Steady rate of strangers from one network.',
  }),
  session_requests_per_minute: whole({
    min: 1,
    max: 10_000_000,
    default: 600,
    meaning: 'Steady rate of what the pages of one web session read. Calls count as those of its key or account.',
  }),
  tokens_per_minute: whole({
    min: 1,
    max: 1e12,
    default: 10_000_000,
    meaning: 'Tokens of one API key per minute, prompt and completion.',
  }),
  chat_body_bytes_max: whole({
    min: KIB,
    max: 256 * MIB,
    default: 10 * MIB,
    meaning: 'Largest body of a chat request.',
  }),
  body_bytes_max: whole({
    min: KIB,
    max: 256 * MIB,
    default: MIB,
    meaning: 'Largest body of any other request.',
  }),
  media_body_bytes_max: whole({
    min: KIB,
    max: 256 * MIB,
    default: 32 * MIB,
    meaning: 'Largest body of a request with images in it: an edit of images, or a video.',
  }),
  messages_max: whole({ min: 1, max: 100_000, default: 2_048, meaning: 'Most messages of one chat request.' }),
  json_depth_max: whole({ min: 8, max: 512, default: 64, meaning: 'Deepest nesting of a JSON body.' }),
  json_keys_max: whole({
    min: 100,
    max: 1_000_000,
    default: 10_000,
    meaning: 'Most keys of a JSON body. For each there may be 20 elements of arrays, and 64 bytes of names.',
  }),
  listens_max: whole({
    min: 1,
    max: 10_000,
    default: 128,
    meaning:
      'Most streams that the clients of one account listen on at one gateway, for changes (MCP) and to tasks that go on (A2A) together.',
  }),
  kept_replies_bytes_max: whole({
    min: 2 * MIB,
    max: 1024 * 1024 * MIB,
    default: 32 * MIB,
    meaning:
      'About how many bytes of replies are kept for one account. A request that comes again with its idempotency key gets the kept reply. Beyond the limit the oldest replies go.',
  }),
  request_timeout_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning: 'Time that a client has to send its whole request.',
  }),
  client_stall_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning: 'How long a client may take nothing of an answer that waits for it; then it counts as gone.',
  }),
  drain_on_shutdown_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'Time that running calls have to finish when the gateway stops.',
  }),
};
