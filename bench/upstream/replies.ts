/** The prepared replies of the mock upstream. The model's name in a request selects one. */
export const MODELS = {
  /** One JSON reply of about 1 KB. */
  small: 'bench-small',
  /**
   * A stream of BURST_EVENTS events, sent at once in a few writes. Each event is its own HTTP chunk, as in real
   * servers.
   */
  burst: 'bench-burst',
  /** A stream of 20 events, sent at once. It is for the time to the first byte. */
  short: 'bench-short',
  /** A stream of PACED_EVENTS events, one every PACE_MS. */
  paced: 'bench-paced',
  /** A stream that begins and then sends nothing until it is closed. */
  open: 'bench-open',
  /** A stream of 100 deltas, in the wire format of the path. */
  wire: 'bench-wire',
} as const;

export const BURST_EVENTS = 500;
export const PACED_EVENTS = 75;
export const PACE_MS = 20;

const USAGE = { prompt_tokens: 24, completion_tokens: 160, total_tokens: 184 };
const TEXT =
  'A gateway stands between those who ask and those who answer. It knows the price before it forwards a question, keeps the money safe ' +
  'while the answer is under way, and pays for exactly what was delivered. ';

const http = (type: string, rest: string) => `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${rest}\r\n`;
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const LAST_CHUNK = '0\r\n\r\n';

const event = (choice: object | null, usage: object | null = null) =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-bench',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: MODELS.burst,
    choices: choice ? [{ index: 0, finish_reason: null, ...choice }] : [],
    ...(usage ? { usage } : {}),
  })}\n\n`;

const delta = (index: number) => event({ delta: { content: ` word${index % 10}` } });
const FIRST = event({ delta: { role: 'assistant', content: '' } });
const endOf = (usage: object) =>
  [event({ delta: {}, finish_reason: 'stop' }), event(null, usage), 'data: [DONE]\n\n'].map(chunk).join('') +
  LAST_CHUNK;

const SMALL_BODY = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: MODELS.small,
  choices: [{ index: 0, message: { role: 'assistant', content: TEXT.repeat(3).slice(0, 760) }, finish_reason: 'stop' }],
  usage: USAGE,
});

/** The whole small reply: head and body. */
export const SMALL = Buffer.from(
  http('application/json', `content-length: ${Buffer.byteLength(SMALL_BODY)}\r\n`) + SMALL_BODY,
);

export const STREAM_HEAD = Buffer.from(http('text/event-stream', 'transfer-encoding: chunked\r\n'));

/** The head and first event of a stream. */
export const STREAM_START = Buffer.concat([STREAM_HEAD, Buffer.from(chunk(FIRST))]);

/** The finish chunk, the usage chunk, `[DONE]` and the end of the body. */
export const STREAM_END = Buffer.from(endOf(USAGE));

/** One event in the middle of a paced stream. */
export const PACED_EVENT = Buffer.from(chunk(delta(1)));

/**
 * A whole stream of `events` events, split into writes of about 16 KiB between events. It claims no more tokens than it
 * has words: a gateway writes a warning for each implausible claim.
 */
function burstOf(events: number): readonly Buffer[] {
  const writes: string[] = [];
  const words = events - 4;
  const completion_tokens = Math.min(words, USAGE.completion_tokens);
  const usage = { ...USAGE, completion_tokens, total_tokens: USAGE.prompt_tokens + completion_tokens };
  let part = STREAM_START.toString();
  for (let index = 0; index < words; index++) {
    part += chunk(delta(index));
    if (part.length > 16_384) {
      writes.push(part);
      part = '';
    }
  }
  return [...writes, part + endOf(usage)].map((write) => Buffer.from(write));
}

export const BURST = burstOf(BURST_EVENTS);
export const SHORT = burstOf(20);
