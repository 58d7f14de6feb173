import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { ERROR_CODES, GatewayError } from '#errors';
import { UpstreamFailure } from '#wire';
import {
  type CallEvent,
  type ContentResult,
  type EventBatch,
  eventBatch,
  eventOf,
  type Part,
  type TargetAdapter,
  type TargetRequest,
  textDelta,
} from '#bridge';
import { NO_PREFERENCES, type ReplyEnd, type Send } from '#call';
import type { Catalog } from '#catalog';

/** What a line server is asked: the ask as it was given to the speaker, and the service. */
export type LineAsk = TargetRequest & { readonly name: string };

/** One line of its answer. */
export type Line =
  | { readonly part: Part }
  | { readonly text: string }
  | { readonly progress: string }
  | { readonly end: Partial<ContentResult> }
  /** Waits until the test says so, or the other side leaves. */
  | { readonly wait: Promise<unknown> };

export interface LineServer {
  readonly url: string;
  readonly asked: LineAsk[];
  /** Resolves when an exchange is left before its end. */
  readonly left: Promise<void>;
}

/** A primitive of a protocol of the tests' own: a JSON ask is posted, lines of JSON come back. */
export async function startLineServer(answer: (ask: LineAsk) => Iterable<Line>): Promise<LineServer> {
  const asked: LineAsk[] = [];
  const left = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) left.resolve();
    });
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
      const ask = JSON.parse(Buffer.concat(chunks).toString()) as LineAsk;
      asked.push(ask);
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      for (const line of answer(ask)) {
        if ('wait' in line) await line.wait;
        else response.write(`${JSON.stringify(line)}\n`);
      }
      response.end();
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, left: left.promise };
}

const ENDED: ContentResult = {
  finish: 'stop',
  error: null,
  taskId: null,
  contextId: null,
  promptTokens: 0,
  completionTokens: 0,
};

/** Speaks to line servers. Each answer is one call. */
export function createLineTarget(primitive: 'agent' | 'model', catalog: Catalog): TargetAdapter {
  const offers = () => catalog.offers(primitive);
  return {
    primitive,
    has(name) {
      try {
        return catalog.resolve(name, primitive).offers.length > 0;
      } catch {
        return false;
      }
    },
    list: (limit) =>
      offers()
        .slice(0, limit)
        .map(({ service, displayName, description }) => ({ name: service, displayName, description })),
    async toCall(name, ask, { caller, requestId, traceparent, wantsReceipt }) {
      if (ask.maxTokens !== null && ask.maxTokens > 1_000)
        throw new GatewayError('unprocessable', `${name} gives at most 1000 tokens`);
      // The name of an error as the id of a task asks for that error.
      const code = ERROR_CODES.find((one) => one === ask.taskId);
      if (code !== undefined) throw new GatewayError(code, `${name} refuses this task`);
      return {
        primitive,
        caller,
        requestId,
        targets: [name],
        preferences: NO_PREFERENCES,
        stickyKey: null,
        images: 0,
        stream: ask.stream,
        adapter: {
          startAttempt: (_offer, send) => askLines(send, JSON.stringify({ ...ask, name })),
        },
        estimate: () => ({ call: 1n }),
        metadata: null,
        traceparent,
        wantsReceipt,
      };
    },
  };
}

async function* askLines(
  send: Send,
  body: string,
): AsyncGenerator<EventBatch | null, ReplyEnd<ContentResult>, undefined> {
  const headers = { 'content-type': 'application/json' };
  const reply = await send({ method: 'POST', path: '', headers, body }).head;
  let rest = '';
  for (;;) {
    const chunks = await reply.read();
    if (chunks === null) throw new UpstreamFailure('the line ended', { retryable: false, attributedTo: 'provider' });
    const lines = (rest + Buffer.concat(chunks).toString()).split('\n');
    rest = lines.pop()!;
    for (const text of lines) {
      const line = JSON.parse(text) as Exclude<Line, { wait: unknown }>;
      if ('end' in line) return ended({ ...ENDED, ...line.end });
      const event = eventOfLine(line);
      yield event === null ? null : eventBatch([event], text.length);
    }
  }
}

function eventOfLine(line: Exclude<Line, { wait: unknown } | { end: unknown }>): CallEvent | null {
  if ('text' in line) return textDelta(line.text);
  return 'part' in line ? eventOf(line.part) : { type: 'progress', text: line.progress };
}

function ended(result: ContentResult): ReplyEnd<ContentResult> {
  const failed = result.finish === 'failed';
  return {
    usage: failed ? null : { call: 1n },
    outcome: failed ? 'free' : 'complete',
    estimated: false,
    finishReason: result.finish,
    flags: [],
    result,
  };
}
