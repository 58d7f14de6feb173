// `node bench/sse-reader.ts`: nanoseconds per event of the stream reader alone, without sockets.
import { createChatStreamReader } from '../src/openai/stream/chat-stream-reader.ts';
import type { ReplyContext } from '../src/openai/chat/reply/chat-end.ts';

const EVENTS = 200_000;
const ROUNDS = 7;

const context: ReplyContext = {
  callId: 'gen-0123456789abcdef000001',
  service: 'bench/model',
  provider: 'Bench',
  rates: {},
  budget: { promptTokensMax: 1_000, completionCap: 1e9, completionTokensMax: 1e9, keptBy: 'provider' },
  size: {
    bytes: 100,
    added: 0,
    messages: 1,
    images: 0,
    audio: false,
    video: false,
    file: false,
    tools: false,
    hidden: false,
  },
  created: 1_800_000_000,
  replyBytesMax: 1e12,
  readFor: 'bench',
  asObject: true,
};

const event = (content: string) =>
  `data: {"id":"chatcmpl-AbCdEf0123456789","object":"chat.completion.chunk","created":1800000000,"model":"upstream-model-1","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":${JSON.stringify(content)}},"logprobs":null,"finish_reason":null}]}\n\n`;

const words = [' the', ' of', ' tokens', ',', ' "quoted"', ' Grüße', '\n\n', ' and', ' so', ' on'];

/** Makes chunks of `perChunk` events each. */
function chunksOf(perChunk: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (let i = 0; i < EVENTS; i += perChunk) {
    let text = '';
    for (let k = 0; k < perChunk; k++) text += event(words[(i + k) % words.length]!);
    chunks.push(Buffer.from(text));
  }
  return chunks;
}

function nanosecondsPerEvent(chunks: readonly Buffer[], parseAll: boolean): number {
  const reader = createChatStreamReader(context, { parseAll });
  reader.head(200, { 'content-type': 'text/event-stream' });
  const started = process.hrtime.bigint();
  for (const chunk of chunks) reader.data([chunk]);
  return Number(process.hrtime.bigint() - started) / EVENTS;
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;

for (const perChunk of [1, 4, 32]) {
  const chunks = chunksOf(perChunk);
  const fast: number[] = [];
  const parsed: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    fast.push(nanosecondsPerEvent(chunks, false));
    parsed.push(nanosecondsPerEvent(chunks, true));
  }
  console.log(
    `${String(perChunk).padStart(2)} events a chunk: ${median(fast).toFixed(0)} ns an event, ${median(parsed).toFixed(0)} ns when every event is parsed`,
  );
}
