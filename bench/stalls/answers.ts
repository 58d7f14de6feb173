import { filled, MIB, repeated, upTo } from './text.ts';

/** A provider's answer. `ID` in it is replaced by the request's id. */
export interface Answer {
  readonly type: 'application/json' | 'text/event-stream';
  readonly bytes: Buffer;
}

const WORDS = repeated('Words, words, words. ');
const ESCAPES = repeated(String.raw`\u00e9\n\"`);
const WIDE = repeated('語😀', 128);
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

const CHAT = '{"choices":[{"index":0,"message":{"role":"assistant","content":"';
const CHAT_END = '"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}';
const keys = (count: number) => upTo(count, (index) => `,"k${index}":1`);
const chunk = (open: string, close: string, bytes: number, pieceAt: (index: number) => string) =>
  `data: ${filled(`{"choices":[{"index":0,"delta":{"content":"${open}`, `${close}"},"finish_reason":null}]}`, bytes, pieceAt).toString()}\n\n`;
const LAST = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n\ndata: [DONE]\n\n`;

const json = (bytes: Buffer): Answer => ({ type: 'application/json', bytes });
const events = (text: string): Answer => ({ type: 'text/event-stream', bytes: Buffer.from(text) });

/** Answers of a chat model in one piece. */
export const CHAT_WHOLE: Readonly<Record<string, () => Answer>> = {
  '8 MiB text': () => json(filled(CHAT, `${CHAT_END}}`, 8 * MIB, WORDS)),
  '8 MiB escapes': () => json(filled(CHAT, `${CHAT_END}}`, 8 * MIB, ESCAPES)),
  '8 MiB wide text': () => json(filled(CHAT, `${CHAT_END}}`, 8 * MIB, WIDE)),
  '60 MiB text': () => json(filled(CHAT, `${CHAT_END}}`, 60 * MIB, WORDS)),
  '64 KiB keys': () => json(filled(`${CHAT}x${CHAT_END},"more":{"first":0`, '}}', 64 * 1024, keys(20_000))),
  '20,000 keys': () => json(filled(`${CHAT}x${CHAT_END},"more":{"first":0`, '}}', 8 * MIB, keys(19_900))),
  '450,000 keys': () => json(filled(`${CHAT}x${CHAT_END},"more":{"first":0`, '}}', 8 * MIB, keys(450_000))),
  '4,000,000 elements': () => json(filled(`${CHAT}x${CHAT_END},"more":[0`, ']}', 8 * MIB, repeated(',0', 512))),
  'depth 120 × 4,000': () =>
    json(
      filled(
        `${CHAT}x${CHAT_END},"more":[0`,
        ']}',
        MIB,
        upTo(4_000, () => `,${nested(120)}`),
      ),
    ),
};

/** Streamed answers of a chat model. */
export const CHAT_STREAM: Readonly<Record<string, () => Answer>> = {
  '8 events of 1 MiB text': () => events(Array.from({ length: 8 }, () => chunk('', '', MIB, WORDS)).join('') + LAST),
  '8 events of 1 MiB escapes': () =>
    events(Array.from({ length: 8 }, () => chunk('', '', MIB, ESCAPES)).join('') + LAST),
  '8 MiB of small events': () => events(chunk('a', '', 128, () => '').repeat((8 * MIB) / 80) + LAST),
  'one event of 20,000 keys': () =>
    events(
      `data: {"choices":[{"index":0,"delta":{"content":"a"}}],"more":{"a":0${Array.from({ length: 19_900 }, (_, i) => `,"k${i}":1`).join('')}}}\n\n${LAST}`,
    ),
  '8 MiB of empty lines': () => events('\n'.repeat(8 * MIB) + LAST),
  '8 MiB in one piece, asked for as a stream': () => CHAT_WHOLE['8 MiB text']!(),
};

const RESULT = '{"jsonrpc":"2.0","id":"ID","result":{"resultType":"complete","content":[{"type":"text","text":"';
const RESULT_END = '"}]';
const structured = (bytes: number, pieceAt: (index: number) => string) =>
  filled(`${RESULT}x${RESULT_END},"structuredContent":{"a":0`, '}}}', bytes, pieceAt);
const NOTICE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"';
const stream = (text: string, end: string) => events(`${text}data: ${end}\n\n`);
const SHORT_RESULT = `${RESULT}x${RESULT_END}}}`;

/** Answers of a tool. */
export const TOOL: Readonly<Record<string, () => Answer>> = {
  '8 MiB text': () => json(filled(RESULT, `${RESULT_END}}}`, 8 * MIB - 64, WORDS)),
  '8 MiB escapes': () => json(filled(RESULT, `${RESULT_END}}}`, 8 * MIB - 64, ESCAPES)),
  '8 MiB wide text': () => json(filled(RESULT, `${RESULT_END}}}`, 8 * MIB - 64, WIDE)),
  '8 MiB error text': () => json(filled(RESULT, `${RESULT_END},"isError":true}}`, 8 * MIB - 64, WORDS)),
  '20,000 keys': () => json(structured(8 * MIB, keys(19_000))),
  '500,000 keys': () => json(structured(8 * MIB, keys(500_000))),
  '200,000 elements': () =>
    json(
      structured(
        8 * MIB,
        upTo(1, () => `,"b":[0${',0'.repeat(199_900)}]`),
      ),
    ),
  'depth 250 × 70': () =>
    json(
      structured(
        8 * MIB,
        upTo(70, (index) => `,"b${index}":${nested(250)}`),
      ),
    ),
  'SSE, 7 events of 1 MiB': () =>
    stream(
      Array.from({ length: 7 }, () => `data: ${filled(NOTICE, '"}}', MIB, WORDS).toString()}\n\n`).join(''),
      SHORT_RESULT,
    ),
  'SSE, one event of 8 MiB': () => stream('', filled(RESULT, `${RESULT_END}}}`, 8 * MIB - 256, WORDS).toString()),
  'SSE, 8 MiB of small events': () => stream(`data: ${NOTICE}a"}}\n\n`.repeat((8 * MIB) / 110), SHORT_RESULT),
  'SSE, 1 MiB in lines of data': () =>
    stream('', filled(RESULT, `${RESULT_END}}}`, MIB, WORDS).toString().replaceAll(',"', ',\ndata: "')),
};

const TASK =
  '{"jsonrpc":"2.0","id":"ID","result":{"kind":"message","role":"agent","messageId":"a-1","parts":[{"kind":"text","text":"';
const TASK_END = '"}]';
const CHUNK =
  '{"jsonrpc":"2.0","id":"ID","result":{"kind":"artifact-update","taskId":"t-1","contextId":"c-1","artifact":{"artifactId":"x","parts":[{"kind":"text","text":"';

/** Answers of an agent. */
export const AGENT: Readonly<Record<string, () => Answer>> = {
  '8 MiB text': () => json(filled(TASK, `${TASK_END}}}`, 8 * MIB - 64, WORDS)),
  '8 MiB escapes': () => json(filled(TASK, `${TASK_END}}}`, 8 * MIB - 64, ESCAPES)),
  '20,000 keys': () => json(filled(`${TASK}x${TASK_END},"metadata":{"a":0`, '}}}', 8 * MIB, keys(19_000))),
  '200,000 elements': () =>
    json(
      filled(
        `${TASK}x${TASK_END},"metadata":{"a":[0`,
        ']}}}',
        8 * MIB,
        upTo(1, () => ',0'.repeat(199_900)),
      ),
    ),
  '6,000 parts': () =>
    json(
      filled(
        `${TASK}x"}`,
        ']}}',
        8 * MIB,
        upTo(6_000, () => ',{"kind":"text","text":"a"}'),
      ),
    ),
  'SSE, 7 events of 1 MiB': () =>
    events(
      Array.from({ length: 7 }, () => `data: ${filled(CHUNK, '"}]},"append":true}}', MIB, WORDS).toString()}\n\n`).join(
        '',
      ) + `data: ${TASK}x${TASK_END}}}\n\n`,
    ),
};

/** The tools of a server with very many of them. */
export const manyTools = (count: number): string =>
  Array.from(
    { length: count },
    (_, index) =>
      `{"name":"tool_${index}","description":"Does the thing of number ${index}, in words that somebody may look for.","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"n":{"type":"integer"}}}}`,
  ).join(',');
