import { WebSocket } from 'ws';
import { type HttpTarget, keyHeaders, upstreamPath } from '#config';
import { REALTIME_PATH } from '#config/model-kinds';
import { BOUNDS, foreignObject, readStart } from '#wire';
import { oneLine } from '#security';
import { type Check, ProbeFailure, wordsOf } from './ask.ts';

/** How long an upstream may take to open a session and to send its first event. */
const TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 4_096;
const EVENT_BYTES_MAX = 1024 * 1024;

/** Checks that a model opens a session and says so. It is closed then, so it costs nothing. */
export const realtimeCheck = (name: string, { url, apiKey }: HttpTarget, model: string): Check => ({
  kind: 'model',
  name: `${name}, realtime`,
  run: () => {
    const { origin, pathname } = new URL(url);
    const path = `${REALTIME_PATH}?model=${encodeURIComponent(model)}`;
    const socket = new WebSocket(origin.replace(/^http/, 'ws') + upstreamPath(pathname.replace(/\/$/, ''), path), {
      perMessageDeflate: false,
      followRedirects: false,
      handshakeTimeout: TIMEOUT_MS,
      maxPayload: EVENT_BYTES_MAX,
      headers: { ...keyHeaders(apiKey, path) },
    });
    const late = setTimeout(() => socket.terminate(), TIMEOUT_MS);
    const opening = new Promise<string>((resolve, reject) => {
      const fail = (what: string) => reject(new ProbeFailure(what));
      socket.once('message', (data) => {
        const type = typeOf((data as Buffer).toString('utf8'));
        if (type === 'session.created') resolve('opens a session');
        else fail(`its first event is ${JSON.stringify(type)}; right is session.created`);
      });
      socket.once('unexpected-response', (_request, response) => {
        void readStart(response, ANSWER_BYTES_MAX).then((text) => {
          const words = wordsOf(text);
          fail(
            `answers the handshake of a WebSocket with status ${response.statusCode}${words === '' ? '' : `: ${words}`}`,
          );
        });
      });
      socket.on('error', (error) => fail(`no session could be opened: ${oneLine(error.message)}`));
      socket.once('close', () => fail(`it sent no session.created within ${TIMEOUT_MS / 1000} s`));
    });
    return opening.finally(() => {
      clearTimeout(late);
      socket.terminate();
    });
  },
});

const typeOf = (text: string): unknown => foreignObject(text, BOUNDS.probed)?.['type'];
