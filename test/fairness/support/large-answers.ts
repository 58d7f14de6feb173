import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const MIB = 1024 * 1024;

/** Something between the opening and the closing of a JSON text, so large that the whole has `bytes`. */
const filled = (open: string, close: string, bytes: number, pieceAt: (index: number) => string): Buffer => {
  const pieces = [open];
  let length = open.length + close.length;
  for (let index = 0; ; index++) {
    const piece = pieceAt(index);
    if (length + piece.length > bytes) break;
    pieces.push(piece);
    length += piece.length;
  }
  return Buffer.from(pieces.join('') + close);
};

const CHAT = '{"choices":[{"index":0,"message":{"role":"assistant","content":"';
const CHAT_END = '"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}';

/**
 * Replies of a chat model in one piece, of the largest size that is let through or beyond it, in shapes that take
 * long to read.
 */
export const CHAT_ANSWERS = {
  text: () => filled(CHAT, `${CHAT_END}}`, 8 * MIB, () => 'Words, words, words. '.repeat(64)),
  escapes: () => filled(CHAT, `${CHAT_END}}`, 8 * MIB, () => '\\u00e9\\n\\"'.repeat(64)),
  keys: () =>
    filled(`${CHAT}x${CHAT_END},"more":{"first":0`, '}}', 7 * MIB, (index) =>
      index < 450_000 ? `,"k${index}":1` : ' '.repeat(4096),
    ),
  elements: () => filled(`${CHAT}x${CHAT_END},"more":[0`, ']}', 8 * MIB, () => ',0'.repeat(512)),
  'too large': () => filled(CHAT, `${CHAT_END}}`, 60 * MIB, () => 'Words, words, words. '.repeat(512)),
} as const;

const RESULT = '{"jsonrpc":"2.0","id":"ID","result":{"resultType":"complete","content":[{"type":"text","text":"';
const RESULT_END = '"}]';

/** Results of a tool in the same way. `ID` is where the request's id goes. */
export const TOOL_ANSWERS = {
  text: () => filled(RESULT, `${RESULT_END}}}`, 8 * MIB - 64, () => 'Words, words, words. '.repeat(64)),
  keys: () =>
    filled(`${RESULT}x${RESULT_END},"structuredContent":{"a":0`, '}}}', MIB, (index) =>
      index < 19_000 ? `,"k${index}":1` : ' '.repeat(512),
    ),
  'too many keys': () =>
    filled(`${RESULT}x${RESULT_END},"structuredContent":{"a":0`, '}}}', 3 * MIB, (index) => `,"k${index}":1`),
} as const;

export interface LargeAnswers {
  /** Chat models are at `<url>/<shape>/v1`, `small` with a short answer; tools at `<url>/mcp/<shape>`. */
  readonly url: string;
  stop(): Promise<void>;
}

/** A provider whose answers are as large as one may be. */
export async function startLargeAnswers(): Promise<LargeAnswers> {
  const made = new Map<string, Buffer>([['small', Buffer.from(`${CHAT}hello${CHAT_END}}`)]]);
  const answerOf = (shape: string, of: Readonly<Record<string, () => Buffer>>, kind: string): Buffer => {
    const key = kind + shape;
    let answer = made.get(key);
    if (!answer) made.set(key, (answer = of[decodeURIComponent(shape)]!()));
    return answer;
  };
  const server: Server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      const [, first = '', second = ''] = request.url!.split('/');
      response.setHeader('content-type', 'application/json');
      if (first !== 'mcp') return response.end(answerOf(first, CHAT_ANSWERS, ''));
      const { id, method } = JSON.parse(body) as { id?: string | number; method: string };
      if (method !== 'tools/call')
        return response.end(
          JSON.stringify({
            jsonrpc: '2.0',
            id,
            result: {
              supportedVersions: ['2026-07-28'],
              capabilities: { tools: {} },
              serverInfo: { name: 'large', version: '1' },
              resultType: 'complete',
              tools: [{ name: 'read', inputSchema: { type: 'object' } }],
            },
          }),
        );
      const answer = answerOf(second, TOOL_ANSWERS, 'mcp ');
      const at = answer.indexOf('"ID"');
      response.write(answer.subarray(0, at));
      response.write(JSON.stringify(id));
      response.end(answer.subarray(at + 4));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
