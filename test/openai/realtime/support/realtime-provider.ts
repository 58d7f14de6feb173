import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';

type Json = Record<string, unknown>;

/** A session at the provider, from the side of the provider. */
export interface ProviderSide {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** All events that came, `session.update` of the gateway included. */
  readonly received: Json[];
  /** The session as the provider keeps it. */
  readonly session: Json;
  readonly socket: WebSocket;
  /** The first event of this type that came and that nobody has taken; waits for it. */
  take(type: string): Promise<Json>;
  send(event: Json): void;
  /** Begins a response. */
  begin(id: string): void;
  /** A whole response of text: created, one delta, done. */
  say(id: string, text: string, usage?: unknown): void;
  /** The end of a response. */
  done(id: string, usage: unknown, more?: Json): void;
  readonly closed: Promise<unknown>;
}

export interface RealtimeProvider {
  /** `http://127.0.0.1:<port>/v1`. */
  readonly url: string;
  readonly sessions: ProviderSide[];
  /** The next session that opens. */
  session(): Promise<ProviderSide>;
  /** Answers handshakes with this status instead. */
  refuse: { readonly status: number; readonly body: string } | null;
  /** Members of each new session. */
  shown: Json;
  stop(): Promise<void>;
}

/** Usage in the form of the Realtime API: all text, unless sound is named. */
export const usage = (
  input: number,
  output: number,
  sound: { input?: number; output?: number; cached?: number } = {},
) => ({
  total_tokens: input + output,
  input_tokens: input,
  output_tokens: output,
  input_token_details: {
    text_tokens: input - (sound.input ?? 0),
    audio_tokens: sound.input ?? 0,
    image_tokens: 0,
    cached_tokens: sound.cached ?? 0,
    cached_tokens_details: { text_tokens: sound.cached ?? 0, audio_tokens: 0, image_tokens: 0 },
  },
  output_token_details: { text_tokens: output - (sound.output ?? 0), audio_tokens: sound.output ?? 0 },
});

/** A provider of the Realtime API over real sockets. A test decides what it sends. */
export async function startRealtimeProvider(): Promise<RealtimeProvider> {
  const http = createServer();
  const sockets = new WebSocketServer({ noServer: true });
  const waiting: ((side: ProviderSide) => void)[] = [];
  const untaken: ProviderSide[] = [];
  const provider: RealtimeProvider = {
    url: '',
    sessions: [],
    refuse: null,
    shown: {},
    session() {
      const ready = untaken.shift();
      return ready ? Promise.resolve(ready) : new Promise((resolve) => waiting.push(resolve));
    },
    async stop() {
      for (const { socket } of provider.sessions) socket.terminate();
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
  http.on('upgrade', (request, wire, head) => {
    if (provider.refuse) {
      const { status, body } = provider.refuse;
      wire.end(
        `HTTP/1.1 ${status} No\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
      );
      return;
    }
    sockets.handleUpgrade(request, wire, head, (socket) => {
      const side = sideOf(socket, request.url ?? '', request.headers, provider.shown);
      provider.sessions.push(side);
      const take = waiting.shift();
      if (take) take(side);
      else untaken.push(side);
    });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return Object.assign(provider, { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1` });
}

function sideOf(socket: WebSocket, url: string, headers: IncomingHttpHeaders, shown: Json): ProviderSide {
  const received: Json[] = [];
  const taken = new Set<Json>();
  const waits: { readonly type: string; resolve(event: Json): void }[] = [];
  const session: Json = {
    id: 'sess_1',
    object: 'realtime.session',
    type: 'realtime',
    model: 'upstream-realtime',
    instructions: 'Be kind.',
    max_output_tokens: 'inf',
    output_modalities: ['audio'],
    tools: [],
    client_secret: { value: 'ek_secret' },
    audio: {
      input: { format: { type: 'audio/pcm', rate: 24_000 }, transcription: null, turn_detection: null },
      output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'marin' },
    },
    ...shown,
  };
  let events = 0;
  const side: ProviderSide = {
    url,
    headers,
    received,
    session,
    socket,
    closed: once(socket, 'close'),
    take(type) {
      const found = received.find((event) => event['type'] === type && !taken.has(event));
      if (found) {
        taken.add(found);
        return Promise.resolve(found);
      }
      return new Promise((resolve) => waits.push({ type, resolve }));
    },
    send: (event) => socket.send(JSON.stringify({ event_id: `event_${events++}`, ...event })),
    begin: (id) =>
      side.send({
        type: 'response.created',
        response: { id, object: 'realtime.response', status: 'in_progress', output: [] },
      }),
    done: (id, claim, more = {}) =>
      side.send({
        type: 'response.done',
        response: { id, object: 'realtime.response', status: 'completed', output: [], usage: claim, ...more },
      }),
    say(id, text, claim = usage(20, 5)) {
      side.begin(id);
      side.send({
        type: 'response.output_text.delta',
        response_id: id,
        item_id: 'item_1',
        output_index: 0,
        content_index: 0,
        delta: text,
      });
      side.done(id, claim);
    },
  };
  socket.on('message', (data) => {
    const event = JSON.parse(String(data)) as Json;
    received.push(event);
    if (event['type'] === 'session.update') {
      merge(session, event['session'] as Json);
      side.send({ type: 'session.updated', session });
    }
    const at = waits.findIndex(({ type }) => type === event['type']);
    if (at === -1) return;
    taken.add(event);
    waits.splice(at, 1)[0]!.resolve(event);
  });
  side.send({ type: 'session.created', session });
  return side;
}

function merge(into: Json, from: Json): void {
  for (const [name, value] of Object.entries(from)) {
    const there = into[name];
    if (isPlain(value) && isPlain(there)) merge(there, value);
    else into[name] = value;
  }
}

const isPlain = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
