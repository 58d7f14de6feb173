import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/* What every scripted vendor says, in its own wire: the same texts, and the same tokens. */

export const TEXT = ['Bon', 'jour!'] as const;
export const THOUGHT = 'Let me think.';
export const SIGNATURE = 'c2lnbmVk';
export const CALL = { id: 'call_1', name: 'get_weather', input: { city: 'Paris' } } as const;
export const VECTOR = [0.25, -0.5] as const;

/** Tokens of a reply. `prompt` includes `cached` and `written`, and `completion` includes `reasoning`. */
export const TOKENS = { prompt: 100, cached: 40, written: 10, completion: 20, reasoning: 8 } as const;
/** Tokens of both inputs of a request for embeddings together. */
export const EMBEDDED = 7;

/** The kinds of calls. A request names its kind in its text: `kind=tools`. */
export const KINDS = ['text', 'stream', 'tools', 'images', 'reasoning', 'embeddings', 'paint'] as const;
export type Kind = (typeof KINDS)[number];

/** One request to a vendor. */
export interface VendorRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** The JSON of the body; empty for any other body. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly kind: Kind;
  /** The address of the vendor itself, for addresses in its replies. */
  readonly origin: string;
}

/** A reply: JSON in one piece, events of a stream, or bytes. */
export type VendorReply =
  | { readonly json: unknown; readonly status?: number }
  | { readonly events: readonly (object | string)[]; readonly named?: boolean }
  | { readonly bytes: Buffer; readonly type: string };

export interface ScriptedVendor {
  readonly url: string;
  readonly asked: VendorRequest[];
}

/** A server that answers as the vendor does. It ends with the test or the file that started it. */
export async function startVendor(
  answer: (request: VendorRequest) => VendorReply,
  whenOver: (stop: () => void) => void = onTestFinished,
): Promise<ScriptedVendor> {
  const asked: VendorRequest[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const bytes = Buffer.concat(chunks);
      const text = bytes.toString();
      const { headers, method = '', url: path = '' } = incoming;
      const body = text.startsWith('{') ? (JSON.parse(text) as VendorRequest['body']) : {};
      const kind = (/kind=(\w+)/.exec(text)?.[1] ?? 'text') as Kind;
      const request = { method, path, headers, bytes, text, body, kind, origin: `http://${headers.host}` };
      asked.push(request);
      write(response, answer(request));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  whenOver(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

function write(response: ServerResponse, reply: VendorReply): void {
  if ('json' in reply)
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json' }).end(JSON.stringify(reply.json));
  else if ('bytes' in reply) response.setHeader('content-type', reply.type).end(reply.bytes);
  else {
    response.setHeader('content-type', 'text/event-stream');
    for (const event of reply.events) {
      const name = reply.named && typeof event === 'object' ? `event: ${(event as { type: string }).type}\n` : '';
      response.write(`${name}data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
    }
    response.end();
  }
}
