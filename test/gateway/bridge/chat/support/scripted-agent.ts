import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { UpstreamFailure } from '#wire';
import {
  type CallEvent,
  type ContentResult,
  type EventBatch,
  eventBatch,
  NO_TASK,
  type TargetAdapter,
  type TargetRequest,
  textDelta,
} from '#bridge';
import { NO_PREFERENCES, type ReplyEnd } from '#call';

/** What an agent says: events, then how it ended. It may wait and throw, which breaks its connection. */
export type Script = (ask: TargetRequest) => AsyncIterable<Line> | Iterable<Line>;

type Line = CallEvent | Partial<ContentResult>;

export interface ScriptedAgent {
  /** Base URL, as in `endpoint`. */
  readonly url: string;
  /** What it was asked, oldest first. */
  readonly asked: TargetRequest[];
  /** What the next one asked says. */
  says(script: Script): void;
  /** Speaks to agents that are at this URL, in a protocol of lines of JSON. */
  readonly target: TargetAdapter;
  stop(): Promise<void>;
}

export const said = (text: string): CallEvent => textDelta(text);

/**
 * An agent on a real socket, and the target adapter that speaks its protocol: one POST, answered by a line for each
 * event, the last of which is the end.
 */
export async function startScriptedAgent(): Promise<ScriptedAgent> {
  const asked: TargetRequest[] = [];
  let script: Script = () => [said('hello'), { finish: 'stop' }];
  const server = createServer((request, response) => {
    void (async () => {
      const ask = JSON.parse(await read(request)) as TargetRequest;
      asked.push(ask);
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      response.flushHeaders();
      try {
        for await (const line of script(ask)) response.write(`${JSON.stringify(line)}\n`);
        response.end();
      } catch {
        response.destroy();
      }
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    says(next) {
      script = next;
    },
    target: {
      primitive: 'agent',
      has: () => true,
      list: () => [],
      toCall: async (name, ask, { caller, requestId, traceparent, wantsReceipt }) => ({
        primitive: 'agent',
        caller,
        requestId,
        targets: [name],
        preferences: NO_PREFERENCES,
        stickyKey: null,
        images: 0,
        stream: ask.stream,
        estimate: () => ({ call: 1n }),
        metadata: null,
        traceparent,
        wantsReceipt,
        adapter: {
          async *startAttempt(_offer, send): AsyncGenerator<EventBatch, ReplyEnd<ContentResult>, undefined> {
            const exchange = send({
              method: 'POST',
              path: '',
              headers: { 'content-type': 'application/json' },
              body: JSON.stringify(ask),
            });
            const reply = await exchange.head;
            let text = '';
            for (;;) {
              const chunks = await reply.read();
              if (chunks === null)
                throw new UpstreamFailure('it hung up', { retryable: true, attributedTo: 'provider' });
              text += Buffer.concat(chunks).toString();
              const lines = text.split('\n');
              text = lines.pop()!;
              for (const line of lines) {
                const one = JSON.parse(line) as Line;
                if (!('type' in one)) return toEnd(one);
                yield eventBatch([one])!;
              }
            }
          },
        },
      }),
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function toEnd(given: Partial<ContentResult>): ReplyEnd<ContentResult> {
  const result: ContentResult = { ...NO_TASK, finish: 'stop', error: null, ...given };
  const outcome = result.finish === 'failed' ? 'free' : 'complete';
  return { usage: { call: 1n }, outcome, estimated: false, finishReason: result.finish, flags: [], result };
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
