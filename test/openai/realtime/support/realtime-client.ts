import { once } from 'node:events';
import { type ClientOptions, WebSocket } from 'ws';

export type Json = Record<string, unknown>;

/** The `response` of a `response.done`, as the gateway sends it. */
export interface BilledResponse {
  readonly id: string;
  readonly usage: { readonly cost: number; readonly input_tokens: number; readonly output_tokens: number };
  readonly tollgate: { readonly generation_id: string };
}

/** A raw client of the gateway's `/realtime`. */
export interface RawClient {
  readonly socket: WebSocket;
  readonly events: Json[];
  send(event: Json): void;
  /** The first event of this type that nobody has taken; waits for it. */
  take(type: string): Promise<Json>;
  /** The next response that ended. */
  done(): Promise<BilledResponse>;
  /** How the gateway closed the session. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

/** Opens a session. Rejects with the status and the body of a refused handshake. */
export async function openRealtime(
  url: string,
  key: string | null,
  options: ClientOptions & { readonly protocols?: string[] } = {},
): Promise<RawClient> {
  const { protocols = [], headers, ...more } = options;
  const socket = new WebSocket(url, protocols, {
    perMessageDeflate: false,
    ...more,
    headers: { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...headers },
  });
  const events: Json[] = [];
  const taken = new Set<Json>();
  const waits: { readonly type: string; resolve(event: Json): void }[] = [];
  socket.on('message', (data) => {
    const event = JSON.parse(String(data)) as Json;
    events.push(event);
    const at = waits.findIndex(({ type }) => type === event['type']);
    if (at === -1) return;
    taken.add(event);
    waits.splice(at, 1)[0]!.resolve(event);
  });
  const closed = once(socket, 'close').then(([code, reason]) => ({ code: code as number, reason: String(reason) }));
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
    socket.once('unexpected-response', (_request, response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk)));
      response.on('end', () => reject(Object.assign(new Error(text), { status: response.statusCode, body: text })));
    });
  });
  socket.on('error', () => {});
  const client: RawClient = {
    socket,
    events,
    send: (event) => socket.send(JSON.stringify(event)),
    take(type) {
      const found = events.find((event) => event['type'] === type && !taken.has(event));
      if (found) {
        taken.add(found);
        return Promise.resolve(found);
      }
      return new Promise((resolve) => waits.push({ type, resolve }));
    },
    done: async () => (await client.take('response.done'))['response'] as BilledResponse,
    closed,
  };
  return client;
}
