import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A provider that streams as fast as the client reads. Every answer has `events` events with `eventBytes` bytes of
 * text.
 */
export interface Firehose {
  readonly url: string;
  /** Bytes that were sent, answers that were finished, and answers that the client left. */
  readonly sent: { bytes: number; finished: number; left: number };
  /** Resolves when the client has left the newest answer. */
  cutOff(): Promise<void>;
  stop(): Promise<void>;
}

/** Reports one completion token per 8 bytes of text, and 10 prompt tokens. */
export async function startFirehose({
  events,
  eventBytes,
}: {
  readonly events: number;
  readonly eventBytes: number;
}): Promise<Firehose> {
  const left = new EventTarget();
  const sent = { bytes: 0, finished: 0, left: 0 };
  const frame = (choice: object, more = {}) =>
    Buffer.from(
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [choice], ...more })}\n\n`,
    );
  const event = frame({ index: 0, delta: { content: 'x'.repeat(eventBytes) }, finish_reason: null });
  const completion = (events * eventBytes) / 8;
  const end = Buffer.concat([
    frame(
      { index: 0, delta: {}, finish_reason: 'stop' },
      { usage: { prompt_tokens: 10, completion_tokens: completion, total_tokens: 10 + completion } },
    ),
    Buffer.from('data: [DONE]\n\n'),
  ]);
  const server = createServer((request, response) => {
    request.resume();
    let gone = false;
    let wake = () => {};
    response.on('drain', () => wake());
    response.on('close', () => {
      gone = true;
      wake();
      if (!response.writableFinished) {
        sent.left += 1;
        left.dispatchEvent(new Event('left'));
      }
    });
    const pour = async () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let index = 0; index < events && !gone; index += 1) {
        const room = response.write(event);
        sent.bytes += event.length;
        if (!room && !gone) await new Promise<void>((resolve) => (wake = resolve));
      }
      if (gone) return;
      response.end(end);
      sent.finished += 1;
    };
    request.on('end', () => void pour());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    sent,
    async cutOff() {
      await once(left, 'left');
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
