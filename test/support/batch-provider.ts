import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/* A provider of models with OpenAI's batch API. Its batches end when the test says so. */

type Json = Readonly<Record<string, unknown>>;

/** A line of a batch as the provider gets it. */
export interface ProviderLine {
  readonly custom_id: string;
  readonly method: string;
  readonly url: string;
  readonly body: Json;
}

/** A batch at the provider. */
export interface ProviderSideBatch {
  readonly id: string;
  readonly input_file_id: string;
  readonly endpoint: string;
  readonly metadata: Json | null;
  readonly lines: readonly ProviderLine[];
  status: string;
  output_file_id: string | null;
  error_file_id: string | null;
  errors: { readonly data: readonly Json[] } | null;
  readonly created_at: number;
}

/** `drip`: an answer that goes on for ever, a byte at a time. A text as body is sent as it is. */
type Instead = { readonly status: number; readonly body?: object | string } | 'hang up' | 'silence' | 'drip';

/** Bytes of a drip come this often. */
const DRIP_MS = 20;

export interface BatchProvider {
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly files: Map<string, string>;
  /** The newest last. */
  readonly batches: ProviderSideBatch[];
  /** Requests as `METHOD /path`, in the order of their arrival. */
  readonly log: string[];
  /** Bodies of chat requests that came one by one. */
  readonly single: Json[];
  /** Answers a request in place of the provider. undefined: the provider answers itself. */
  intercept: ((method: string, path: string) => Instead | undefined) | null;
  /** Called when a request was done, before it is answered. It can lose the answer, with or without the connection. */
  after: ((method: string, path: string) => 'hang up' | 'silence' | undefined) | null;
  /** Ends a batch. `answer`: the text of the line's result; null for a line without one. */
  end(batch: ProviderSideBatch, status: string, answer?: (line: ProviderLine) => string | null): void;
  /** Ends each batch when it is first looked at, with a usual answer to each line. */
  isEager: boolean;
  stop(): Promise<void>;
}

/** 11 prompt tokens and 5 completion tokens. */
export const USAGE = { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 };

export const completionOf = (content: string, usage: object = USAGE) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'upstream',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage,
});

/** A line of results with this answer. */
export const resultOf = ({ custom_id }: Pick<ProviderLine, 'custom_id'>, body: object, status_code = 200): string =>
  JSON.stringify({ id: 'r', custom_id, response: { status_code, request_id: 'q', body }, error: null });

/** The usual answer: it repeats the last message. */
export function usualAnswer(line: ProviderLine): string {
  if (line.url === '/v1/embeddings')
    return resultOf(line, {
      object: 'list',
      model: 'upstream',
      data: [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }],
      usage: { prompt_tokens: 11, total_tokens: 11 },
    });
  if (line.url === '/v1/responses')
    return resultOf(line, {
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'upstream',
      output: [
        {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'native', annotations: [] }],
        },
      ],
      usage: { input_tokens: 11, output_tokens: 5, total_tokens: 16 },
    });
  return resultOf(line, completionOf(textOf(line)));
}

export function textOf({ body }: Pick<ProviderLine, 'body'>): string {
  const messages = body['messages'] as readonly { readonly content: string }[];
  return messages.at(-1)!.content;
}

export async function startBatchProvider(): Promise<BatchProvider> {
  let count = 0;
  const server = createServer((request, response) => {
    void answer(request).then(
      (reply) => {
        if (reply === 'silence') return;
        if (reply === 'hang up') return void request.socket.destroy();
        if (reply === 'drip') {
          response.writeHead(200, { 'content-type': 'application/jsonl' });
          const dripping = setInterval(() => response.write(' '), DRIP_MS);
          return void response.once('close', () => clearInterval(dripping));
        }
        const isText = typeof reply.body === 'string';
        response.writeHead(reply.status, { 'content-type': isText ? 'application/jsonl' : 'application/json' });
        response.end(isText ? reply.body : JSON.stringify(reply.body ?? {}));
      },
      (error: unknown) => {
        response.writeHead(500).end(String(error));
      },
    );
  });
  const provider: BatchProvider = {
    url: '',
    files: new Map(),
    batches: [],
    log: [],
    single: [],
    intercept: null,
    after: null,
    isEager: false,
    end(batch, status, given = usualAnswer) {
      const results = batch.lines.map(given).filter((line) => line !== null);
      batch.status = status;
      if (results.length === 0) return;
      batch.output_file_id = `file-out${(count += 1)}`;
      provider.files.set(batch.output_file_id, `${results.join('\n')}\n`);
    },
    stop: () => stop(server),
  };

  async function answer(request: IncomingMessage): Promise<Instead> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const method = request.method!;
    const path = request.url!.replace(/^\/v1/, '');
    provider.log.push(`${method} ${path}`);
    if (request.headers.authorization !== 'Bearer upstream-secret-canary')
      return { status: 401, body: { error: { message: `wrong key ${request.headers.authorization}` } } };
    const instead = provider.intercept?.(method, path);
    if (instead !== undefined) return instead;
    const done = route(method, path, Buffer.concat(chunks));
    return provider.after?.(method, path) ?? done;
  }

  function route(method: string, path: string, body: Buffer): { status: number; body?: object | string } {
    const missing = { status: 404, body: { error: { message: `No such thing: ${path}` } } };
    if (method === 'POST' && path === '/files') {
      const text = body.toString();
      if (!/name="purpose"\r\n\r\nbatch\r\n/.test(text))
        return { status: 400, body: { error: { message: 'purpose' } } };
      const content = /filename="[^"]+"\r\ncontent-type: [^\r]+\r\n\r\n([^]*?)\r\n--/.exec(text)![1]!;
      const id = `file-in${(count += 1)}`;
      provider.files.set(id, content);
      return { status: 200, body: { id, object: 'file' } };
    }
    if (method === 'POST' && path === '/batches') {
      const { input_file_id, endpoint, metadata } = JSON.parse(body.toString()) as ProviderSideBatch;
      const content = provider.files.get(input_file_id);
      if (content === undefined) return { status: 400, body: { error: { message: 'No such file' } } };
      const batch: ProviderSideBatch = {
        id: `batch_p${(count += 1)}`,
        input_file_id,
        endpoint,
        metadata,
        lines: content
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as ProviderLine),
        status: 'validating',
        output_file_id: null,
        error_file_id: null,
        errors: null,
        created_at: Math.floor(Date.now() / 1_000),
      };
      provider.batches.push(batch);
      return { status: 200, body: shown(batch) };
    }
    if (method === 'GET' && path.startsWith('/batches?'))
      return { status: 200, body: { object: 'list', data: provider.batches.toReversed().map(shown), has_more: false } };
    const [, kind, id, action] = /^\/(batches|files)\/([^/?]+)(?:\/(\w+))?$/.exec(path) ?? [];
    if (kind === 'batches') {
      const batch = provider.batches.find((one) => one.id === id);
      if (batch === undefined) return missing;
      if (action === 'cancel') batch.status = 'cancelling';
      else if (provider.isEager && batch.status === 'validating') provider.end(batch, 'completed');
      return { status: 200, body: shown(batch) };
    }
    if (kind === 'files') {
      const content = provider.files.get(id!);
      if (content === undefined) return missing;
      if (action === 'content') return { status: 200, body: content };
      if (method === 'DELETE') {
        provider.files.delete(id!);
        // A batch that has not been read needs its file.
        for (const one of provider.batches)
          if (one.input_file_id === id && one.status === 'validating') one.status = 'failed';
      }
      return { status: 200, body: { id, deleted: true } };
    }
    if (method === 'POST' && path === '/chat/completions') {
      const asked = JSON.parse(body.toString()) as Json;
      provider.single.push(asked);
      return { status: 200, body: completionOf(textOf({ body: asked })) };
    }
    return missing;
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(provider, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` });
}

const shown = (batch: ProviderSideBatch) => ({ object: 'batch', completion_window: '24h', ...batch, lines: undefined });

async function stop(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}
