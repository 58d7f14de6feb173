import { choice, optionalWhole, whole, HOUR_MS, KIB, MIB, MINUTE_MS } from '../option.ts';

/* Limits of those who call the gateway, and of its calls to providers. */

export const LIMITS = {
  requests_per_minute: whole({
    min: 1,
    max: 10_000_000,
    default: 60,
    meaning: 'Requests per minute of one API key, as a steady rate.',
  }),
  burst: whole({
    min: 0,
    max: 10_000_000,
    default: 20,
    meaning:
      'Requests that a key may send at once in addition to the steady rate. Rate headers show only the steady rate.',
  }),
  account_requests_per_minute: optionalWhole({
    min: 1,
    max: 100_000_000,
    absent: '10 × `requests_per_minute`',
    takes: 'whole number, 1 to 100000000',
    meaning:
      'Requests per minute of all keys of one account together, as a steady rate. `burst` comes on top. A rate that the operator sets for an account replaces it. Requests for the state of videos and responses, and those that count tokens, have the same rate for each of the two kinds. All wallets of one network that never had 0.10 USD, and organisations of theirs, have together the rate of one account. Development accounts have none.',
  }),
  development_requests_per_minute: whole({
    min: 1,
    max: 10_000_000,
    default: 6_000,
    meaning: 'Requests per minute of a development key, as a steady rate.',
  }),
  anonymous_requests_per_minute: whole({
    min: 1,
    max: 10_000_000,
    default: 30,
    meaning: 'Requests per minute without a credential from one network, as a steady rate.',
  }),
  session_requests_per_minute: whole({
    min: 1,
    max: 10_000_000,
    default: 600,
    meaning:
      'Requests per minute with which the pages of one web session read, as a steady rate. Calls count for its key or account instead.',
  }),
  tokens_per_minute: whole({
    min: 1,
    max: 1e12,
    default: 10_000_000,
    meaning: 'Tokens per minute of one API key, prompt and completion together.',
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
    meaning: 'Largest body of a request with files: an edit of images, a video, or sound that is to be transcribed.',
  }),
  anonymous_body_bytes_max: whole({
    min: KIB,
    max: 256 * MIB,
    default: MIB,
    meaning:
      'Largest body of a request without a credential and without a payment. With a payment in `PAYMENT-SIGNATURE`, the largest body of the endpoint counts.',
  }),
  bodies_bytes_max: optionalWhole({
    min: MIB,
    max: 64 * 1024 * MIB,
    absent: 'a quarter of the memory that the process may use, 128 MiB to 1 GiB',
    meaning:
      'Memory in bytes for [large requests](run/memory.md): bodies above 8 KiB, until their calls end. Parsed JSON counts four times. One account and one network get at most a quarter, and as many bytes as they leave free, but one body of the largest size where there is room. What does not fit waits, see `limits.bodies_wait_ms`.',
  }),
  bodies_wait_ms: whole({
    min: 0,
    max: 600_000,
    default: 30_000,
    meaning:
      'How long a body above 8 KiB with a `content-length` waits for memory, before it is read. Then the answer is 429 if its account or its network has used its quarter, or 503 if all memory is used, with `Retry-After`. 0: nothing waits.',
  }),
  bodies_waiting_max: whole({
    min: 1,
    max: 65_536,
    default: 256,
    meaning:
      'Number of bodies that may wait for memory. One account and one network get at most a quarter, and as many as they leave free. Up to 128 KiB of a body that waits are in memory.',
  }),
  upload_bytes_per_second_min: whole({
    min: 1,
    max: 1024 * MIB,
    default: 8 * KIB,
    meaning:
      'Least speed of a body above 64 KiB, on average over 10 s. A slower upload ends with 408. A smaller body has `limits.request_timeout_ms` to arrive.',
  }),
  messages_max: whole({
    min: 1,
    max: 100_000,
    default: 2_048,
    meaning: 'Largest number of messages in one chat request.',
  }),
  json_depth_max: whole({ min: 8, max: 512, default: 64, meaning: 'Largest nesting depth of a JSON body.' }),
  json_keys_max: whole({
    min: 100,
    max: 1_000_000,
    default: 10_000,
    meaning:
      'Largest number of keys in a JSON body. The number of array elements may be 20 times as large, and all names together may have 64 times as many bytes.',
  }),
  connections_max: whole({
    min: 16,
    max: 1_000_000,
    default: 32_768,
    meaning:
      'Largest number of connections of clients to one gateway, WebSockets included. A network (an IPv4 address, or the first 64 bits of an IPv6 address) may have as many as it leaves free: half of them if it is the only one. A proxy of `server.trusted_proxies` may have all. The process needs as many open files, and those of its connections to providers.',
  }),
  listens_max: whole({
    min: 1,
    max: 10_000,
    default: 128,
    meaning:
      'Largest number of streams on which the clients of one account listen at one gateway: for changes (MCP) and to running tasks (A2A) together. Its restricted keys share twice as many.',
  }),
  realtime_sessions_max: whole({
    min: 1,
    max: 10_000,
    default: 16,
    meaning:
      'Largest number of open sessions at `/realtime` of one account at one gateway, and of WebSockets at `/responses`. Its restricted keys share twice as many.',
  }),
  realtime_events_per_second: whole({
    min: 1,
    max: 1_000_000,
    default: 2_000,
    meaning:
      'Events per second in all sessions at `/realtime` of one account at one gateway, as a steady rate in each direction. Those beyond it wait, and hold back whoever sends them. Speech is sent as 10 to 100 events a second.',
  }),
  realtime_bytes_per_second: whole({
    min: KIB,
    max: 1024 * MIB,
    default: 4 * MIB,
    meaning:
      'Bytes of events per second in all sessions at `/realtime` of one account at one gateway, as a steady rate in each direction. Those beyond it wait. Speech of 24 kHz has 64 KB a second in base64, so the default lets 16 sessions send four times as fast as somebody speaks.',
  }),
  realtime_session_ms: whole({
    min: 1_000,
    max: 24 * HOUR_MS,
    default: HOUR_MS,
    meaning:
      'Longest duration of a session at `/realtime`, and of a WebSocket at `/responses`. Then the client has to open another one.',
  }),
  realtime_idle_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: 10 * MINUTE_MS,
    meaning:
      'How long the client of a session at `/realtime`, or of a WebSocket at `/responses`, may send no event. Then it ends.',
  }),
  kept_replies_bytes_max: whole({
    min: 2 * MIB,
    max: 1024 * 1024 * MIB,
    default: 32 * MIB,
    meaning:
      'Approximate size in bytes of the replies that are kept for one account. A repeated request with the same idempotency key gets the kept reply. Above the limit, the oldest replies are deleted.',
  }),
  request_timeout_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning:
      'Longest time for a client to send the headers and a body of up to 64 KiB. For a larger body see `limits.upload_bytes_per_second_min`.',
  }),
  client_stall_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning: 'How long a client may read nothing of an answer that waits for it. After that it counts as gone.',
  }),
  shutdown_delay_ms: whole({
    env: 'TOLLGATE_SHUTDOWN_DELAY_MS',
    min: 0,
    max: HOUR_MS,
    default: 0,
    meaning:
      'How long a gateway that gets SIGTERM goes on taking calls while `/health/ready` is 503, so that load balancers leave it before it refuses any. Set it if several gateways are behind a load balancer, longer than the load balancer needs to notice; leave it at 0 for a single gateway.',
  }),
  drain_on_shutdown_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'How long running calls may take to finish when the gateway stops.',
  }),
};

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
    meaning:
      'Largest number of attempts at one call. Each model that a request names has at least one. With `1`, an only provider does not get a request a second time.',
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
      'Largest reply of a provider with images, which are in base64, or with speech, and largest answer of an agent with its files. For a stream of an agent: its largest event. Also the largest answer that is kept as a file for repeats of its request.',
  }),
  replies_bytes_max: whole({
    min: MIB,
    max: 64 * 1024 * MIB,
    default: 128 * MIB,
    meaning:
      'Memory in bytes for unfinished replies above 64 KiB. All replies to one account, or of one provider, get at most a quarter, and as many bytes as they leave free. A reply that does not fit waits up to 10 s, then it is given up, and charged if it came from an own provider of the operator.',
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

/** `[packages]`: packages of the AI SDK. A provider's file has it too. */
export const PACKAGES = {
  wall: choice({
    values: ['if_available', 'required'],
    default: 'if_available',
    meaning:
      'Whether the packages of `params.sdk` need a wall of the operating system beside that of Node. With `required`, the start is refused on a machine that has none: see [what a package may do](reference/packages.md).',
  }),
};
