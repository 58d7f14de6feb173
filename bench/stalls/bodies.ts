import { filled, MIB, repeated, upTo } from './text.ts';

/** Placeholder in a body for an id that must be new in each request. It is as long as a UUID. */
export const NEW_ID = 'an-id-that-is-new-with-each-request-';

const WORDS = repeated('Words, words, words. ');
const HALVES = repeated(String.raw`\ud83d`, 256);
const PAIRS = repeated(String.raw`\ud83d\ude00`, 128);
const WIDE = repeated('語😀', 128);
const keys = (count: number, value = '1') => upTo(count, (index) => `,"k${index}":${value}`);

/** Adds fields after the model and its message, so that the body has the given size. */
const withMore = (model: string, open: string, close: string, bytes: number, pieceAt: (index: number) => string) =>
  filled(
    `{"model":"${model}","max_tokens":16,"messages":[{"role":"user","content":"hello"}]${open}`,
    `${close}}`,
    bytes,
    pieceAt,
  );
const withText = (model: string, bytes: number, pieceAt: (index: number) => string) =>
  filled(`{"model":"${model}","max_tokens":16,"messages":[{"role":"user","content":"`, '"}]}', bytes, pieceAt);
const withMessages = (model: string, bytes: number, pieceAt: (index: number) => string) =>
  filled(`{"model":"${model}","max_tokens":16,"messages":[{"role":"user","content":"hello"}`, ']}', bytes, pieceAt);
const withParts = (model: string, bytes: number, pieceAt: (index: number) => string) =>
  filled(
    `{"model":"${model}","max_tokens":16,"messages":[{"role":"user","content":[{"type":"text","text":"hello"}`,
    ']}]}',
    bytes,
    pieceAt,
  );

/** Bodies of chat requests of the largest accepted size (10 MiB), or with the most structure. */
export const CHAT_BODIES: Readonly<Record<string, (model: string) => Buffer>> = {
  'one text': (model) => withText(model, 10 * MIB, WORDS),
  'wide text': (model) => withText(model, 10 * MIB, WIDE),
  'halves of characters': (model) => withText(model, 10 * MIB, HALVES),
  'escaped characters': (model) => withText(model, 10 * MIB, PAIRS),
  'escaped quotes': (model) => withText(model, 10 * MIB, repeated(String.raw`\"\n\\`, 128)),
  '10,000 keys': (model) => withMore(model, ',"x":{"a":0', '}', 10 * MIB, keys(9_900)),
  '10,000 fields': (model) => withMore(model, '', '', 10 * MIB, keys(9_900)),
  '9,900 texts of 1 KB': (model) => withMore(model, ',"x":{"a":0', '}', 10 * MIB, keys(9_900, `"${'a'.repeat(1000)}"`)),
  '9,900 fields of 1 KB in name': (model) =>
    withMore(
      model,
      '',
      '',
      10 * MIB,
      upTo(9_900, (index) => `,"${'k_'.repeat(500)}${index}":1`),
    ),
  '9,900 fields of 300 wide characters in name': (model) =>
    withMore(
      model,
      '',
      '',
      10 * MIB,
      upTo(9_900, (index) => `,"${'ſ語'.repeat(150)}${index}":1`),
    ),
  'one name of 10 MiB': (model) => withMore(model, ',"', '":1', 10 * MIB, WORDS),
  'one name of 10 MiB, signs': (model) => withMore(model, ',"', '":1', 10 * MIB, repeated('_-', 256)),
  '990,000 elements': (model) =>
    withMore(
      model,
      ',"x":[0',
      ']',
      10 * MIB,
      upTo(99, () => ',0'.repeat(10_000)),
    ),
  '990,000 elements of 9 digits': (model) =>
    withMore(
      model,
      ',"x":[0',
      ']',
      10 * MIB,
      upTo(99, () => ',123456.75'.repeat(10_000)),
    ),
  '990,000 texts': (model) =>
    withMore(
      model,
      ',"x":[0',
      ']',
      10 * MIB,
      upTo(99, () => ',"é"'.repeat(10_000)),
    ),
  '9,000 long numbers': (model) =>
    withMore(
      model,
      ',"x":[0',
      ']',
      10 * MIB,
      upTo(9_000, () => `,${'7'.repeat(1_000)}`),
    ),
  'one number of 10 MiB': (model) => withMore(model, ',"x":', '', 10 * MIB, repeated('7', 1_024)),
  '9,900 objects': (model) =>
    withMore(
      model,
      ',"x":[0',
      ']',
      10 * MIB,
      upTo(9_900, () => ',{}'),
    ),
  'depth 60 × 160': (model) =>
    withMore(
      model,
      ',"x":[0',
      ']',
      10 * MIB,
      upTo(160, () => `,${'['.repeat(60)}${']'.repeat(60)}`),
    ),
  '2,000 messages': (model) =>
    withMessages(
      model,
      10 * MIB,
      upTo(2_000, () => `,{"role":"user","content":"${'Words. '.repeat(740)}"}`),
    ),
  '2,000 messages of escapes': (model) =>
    withMessages(
      model,
      10 * MIB,
      upTo(2_000, () => `,{"role":"user","content":"${String.raw`\u00e9`.repeat(850)}"}`),
    ),
  '4,900 parts': (model) =>
    withParts(
      model,
      10 * MIB,
      upTo(4_900, () => `,{"type":"text","text":"${'Words. '.repeat(300)}"}`),
    ),
  '3,200 images': (model) =>
    withParts(
      model,
      10 * MIB,
      upTo(3_200, () => ',{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}'),
    ),
  'images of 10 MiB': (model) =>
    withParts(
      model,
      10 * MIB,
      upTo(9, () => `,{"type":"image_url","image_url":{"url":"data:image/png;base64,${'iVBORw0K'.repeat(131_072)}"}}`),
    ),
  'other parts': (model) =>
    withParts(
      model,
      10 * MIB,
      upTo(3_000, () => `,{"type":"input_audio","input_audio":{"data":"${'Words. '.repeat(450)}"}}`),
    ),
  'white space': (model) => withMore(model, '', '', 10 * MIB, repeated(' \n', 512)),
  'broken at its end': (model) =>
    withMessages(
      model,
      10 * MIB,
      upTo(2_000, () => `,{"role":"user","content":"${String.raw`a\"`.repeat(1_700)}"}`),
    ).subarray(0, -1),
  'no UTF-8 at its end': (model) => {
    const body = withText(model, 10 * MIB, WORDS);
    body[body.length - 6] = 0xff;
    return body;
  },
};

const META = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"stalls","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`;
const tool = (bytes: number, open: string, close: string, pieceAt: (index: number) => string) =>
  filled(
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read",${META},"arguments":{"a":0${open}`,
    `${close}}}}`,
    bytes,
    pieceAt,
  );
export const TOOL_CALL = tool(MIB, '', '', () => '');

/** Bodies of tool calls of the largest accepted size (1 MiB). */
export const TOOL_BODIES: Readonly<Record<string, () => Buffer>> = {
  'one text': () => tool(MIB, ',"b":"', '"', WORDS),
  'halves of characters': () => tool(MIB, ',"b":"', '"', HALVES),
  '10,000 keys': () => tool(MIB, ',"b":{"c":0', '}', keys(9_900)),
  '500,000 elements': () => tool(MIB, ',"b":[0', ']', repeated(',0', 64)),
};

const send = (bytes: number, text: string, open: string, close: string, pieceAt: (index: number) => string) =>
  filled(
    `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"${NEW_ID}","role":"user","parts":[{"kind":"text","text":"${text}`,
    close,
    bytes,
    (index) => (index === 0 ? open + pieceAt(0) : pieceAt(index)),
  );
export const MESSAGE = send(MIB, 'hello', '', '"}]}}}', (index) => (index === 0 ? ' ' : ''));
export const streamed = (body: Buffer) => Buffer.from(body.toString().replace('message/send', 'message/stream'));

/** Bodies of messages to an agent of the largest accepted size (1 MiB). */
export const MESSAGE_BODIES: Readonly<Record<string, () => Buffer>> = {
  'one text': () => send(MIB, '', '', '"}]}}}', WORDS),
  'halves of characters': () => send(MIB, '', '', '"}]}}}', HALVES),
  '10,000 keys': () => send(MIB, 'hello', '"}],"metadata":{"c":0', '}}}}', keys(9_900)),
  '500,000 elements': () => send(MIB, 'hello', '"}],"metadata":{"c":[0', ']}}}}', repeated(',0', 64)),
  '4,900 parts': () =>
    send(
      MIB,
      'hello',
      '"}',
      ']}}}',
      upTo(4_900, () => ',{"kind":"text","text":"a"}'),
    ),
};

const entry = (index: number) => `${index === 0 ? '' : ','}{"jsonrpc":"2.0","id":${index},"method":"tools/list"}`;

/** Bodies for the JSON-RPC endpoint (10 MiB). */
export const RPC_BODIES: Readonly<Record<string, (model: string) => Buffer>> = {
  'chat of one text': (model) =>
    filled(
      `{"jsonrpc":"2.0","id":1,"method":"chat/completions","params":{"model":"${model}","max_tokens":16,"messages":[{"role":"user","content":"`,
      '"}]}}',
      10 * MIB,
      WORDS,
    ),
  'chat of halves': (model) =>
    filled(
      `{"jsonrpc":"2.0","id":1,"method":"chat/completions","params":{"model":"${model}","max_tokens":16,"messages":[{"role":"user","content":"`,
      '"}]}}',
      10 * MIB,
      HALVES,
    ),
  'batch of 2,500': () => filled('[', ']', 10 * MIB, upTo(2_500, entry)),
  '990,000 elements': () =>
    filled(
      '{"jsonrpc":"2.0","id":1,"method":"x","params":[0',
      ']}',
      10 * MIB,
      upTo(99, () => ',0'.repeat(10_000)),
    ),
};
