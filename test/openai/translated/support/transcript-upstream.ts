import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The answer of a chat service: the chunks of a stream, or a JSON body. */
export interface Transcript {
  readonly status?: number;
  /** Chunks of a stream, each as the object of its event; `[DONE]` follows them. */
  readonly chunks?: readonly object[];
  /** A body in one piece. */
  readonly body?: object;
  /** Text in place of events; the connection is cut after it. */
  readonly cut?: string;
  /** Only these chunks come before `until`; default none. */
  readonly first?: readonly object[];
  /** The rest comes after it. */
  readonly until?: Promise<unknown>;
}

export interface TranscriptUpstream {
  /** Base URL with `/v1`. */
  readonly url: string;
  /** Bodies of the requests, in order of arrival. */
  readonly asked: Record<string, unknown>[];
  /** Answers every request from now on. */
  answer: (body: Record<string, unknown>) => Transcript;
  stop(): Promise<void>;
}

/** A chat service that says word for word what a test tells it to. */
export async function startTranscripts(): Promise<TranscriptUpstream> {
  const asked: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => {
      const body = JSON.parse(text) as Record<string, unknown>;
      asked.push(body);
      const { status = 200, chunks, body: whole, cut, first, until } = upstream.answer(body);
      if (whole) {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
        return;
      }
      response.writeHead(status, { 'content-type': 'text/event-stream' });
      if (cut !== undefined) {
        response.write(cut, () => response.destroy());
        return;
      }
      if (first) response.write(first.map(eventOf).join(''));
      void Promise.resolve(until).then(() => response.end(eventsOf(chunks ?? [])));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const upstream: TranscriptUpstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    answer: () => {
      throw new Error('no answer was given');
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return upstream;
}

const eventOf = (chunk: object): string => `data: ${JSON.stringify(chunk)}\n\n`;

export const eventsOf = (chunks: readonly object[]): string =>
  [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('');

const COMMON = { id: 'x', created: 1, model: 'm' };
export const USAGE = {
  prompt_tokens: 20,
  completion_tokens: 9,
  total_tokens: 29,
  prompt_tokens_details: { cached_tokens: 5 },
};

/** A chunk of a stream. */
export const chunk = (delta: object, finish: string | null = null, more: object = {}): object => ({
  ...COMMON,
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});

/** The last chunk: usage without a choice. */
export const usage = (of: object = USAGE): object => ({
  ...COMMON,
  object: 'chat.completion.chunk',
  choices: [],
  usage: of,
});

/** A completion in one piece. */
export const completion = (message: object, finish = 'stop', of: object = USAGE): object => ({
  ...COMMON,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
  usage: of,
});

/** A stream that says these words. */
export const words = (...texts: readonly string[]): readonly object[] => [
  chunk({ role: 'assistant', content: '' }),
  ...texts.map((content) => chunk({ content })),
  chunk({}, 'stop'),
  usage(),
];

/** One delta of a call of a tool. */
export const call = (index: number, of: { id?: string; name?: string; args?: string }): object =>
  chunk({
    tool_calls: [
      {
        index,
        ...(of.id ? { id: of.id, type: 'function' } : {}),
        function: { ...(of.name ? { name: of.name } : {}), arguments: of.args ?? '' },
      },
    ],
  });
