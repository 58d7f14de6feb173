import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { png } from '../../media/support/image-provider.ts';
import { startVideoProvider } from '../../media/support/video-provider.ts';
import { openSocket, readAnswer } from '../../support/raw-http.ts';

// The clients of a flood, and the providers that get it, in a process of their own: what it costs them does not delay
// the process that measures. Gets floods as messages, and sends how often each status was answered.

/** Where the providers are. It is the first message. */
export interface FloodReady {
  readonly slow: string;
  readonly videos: string;
}

export interface Flood {
  readonly kind: 'silent' | 'videos' | 'chats';
  readonly url: string;
  readonly count: number;
  /** null: without a credential. */
  readonly key: string | null;
}

export type FloodAnswers = Record<string, number>;

const STRANGER = '10.8.0.1';
const COMPLETION = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

/** Sends 30 of 31 MB on many connections, and falls silent for up to 60 s. */
async function sendAndFallSilent({ url, count, key }: Flood): Promise<FloodAnswers> {
  const answers: FloodAnswers = {};
  const piece = Buffer.alloc(64 * 1024, ' ');
  const credential = key === null ? '' : `authorization: Bearer ${key}\r\n`;
  const one = async () => {
    const socket = await openSocket(url);
    const answer = readAnswer(socket).then(
      ({ status }) => String(status),
      () => 'closed',
    );
    socket.write(
      `POST /api/v1/image/edit HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${STRANGER}\r\ncontent-type: application/json\r\n${credential}content-length: 31000000\r\n\r\n`,
    );
    await writeAll(socket, piece, 30_000_000);
    const status = await answer;
    answers[status] = (answers[status] ?? 0) + 1;
    socket.destroy();
  };
  await Promise.all(Array.from({ length: count }, one));
  return answers;
}

/** Writes until all is written or the connection is closed. */
async function writeAll(socket: Socket, piece: Buffer, bytes: number): Promise<void> {
  for (let sent = 0; sent < bytes && socket.writable; sent += piece.byteLength)
    await new Promise<void>((resolve) => socket.write(piece, () => resolve()));
}

const bodyOf = {
  videos: () => {
    const frame = Buffer.concat([png(64, 64), Buffer.alloc(19_000_000, 7)]).toString('base64');
    return { model: 'test/film', prompt: 'x', duration: '4s', image_url: `data:image/png;base64,${frame}` };
  },
  chats: () => ({
    model: 'test/slow',
    max_tokens: 1,
    messages: [{ role: 'user', content: 'x'.repeat(10_000_000) }],
  }),
};
const PATHS = { videos: '/video/queue', chats: '/chat/completions' };
const TRIES_MAX = 40;

/** Sends complete requests at once. Each is repeated as its answer says, until it is served. */
async function sendWhole(kind: 'videos' | 'chats', { url, count, key }: Flood): Promise<FloodAnswers> {
  const answers: FloodAnswers = {};
  const body = Buffer.from(JSON.stringify(bodyOf[kind]()));
  const send = () =>
    new Promise<{ status: string; retryMs: number }>((resolve) => {
      const sent = httpRequest(`${url}/api/v1${PATHS[kind]}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'content-length': body.byteLength,
          authorization: `Bearer ${key}`,
          'x-forwarded-for': STRANGER,
        },
      });
      sent.on('response', (response) => {
        response.resume();
        response.once('close', () =>
          resolve({
            status: String(response.statusCode),
            retryMs: Number(response.headers['retry-after'] ?? 1) * 1_000,
          }),
        );
      });
      sent.on('error', () => resolve({ status: 'closed', retryMs: 1_000 }));
      sent.end(body);
    });
  const one = async () => {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const { status, retryMs } = await send();
      answers[status] = (answers[status] ?? 0) + 1;
      if (status !== '429' && status !== '503') return;
      await pause(retryMs + Math.random() * 500);
    }
  };
  await Promise.all(Array.from({ length: count }, one));
  return answers;
}

const slow = createServer((incoming, response) => {
  incoming.resume();
  incoming.once('end', () =>
    setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end(COMPLETION), 2_000),
  );
}).listen(0, '127.0.0.1');
await once(slow, 'listening');
const videos = await startVideoProvider();
process.on('message', (flood: Flood) => {
  void (flood.kind === 'silent' ? sendAndFallSilent(flood) : sendWhole(flood.kind, flood)).then((answers) =>
    process.send!(answers),
  );
});
process.once('disconnect', () => process.exit(0));
process.send!({
  slow: `http://127.0.0.1:${(slow.address() as AddressInfo).port}/v1`,
  videos: videos.url,
} satisfies FloodReady);
