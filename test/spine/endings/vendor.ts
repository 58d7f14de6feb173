import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Kind } from './kinds.ts';
import { ALL_KINDS } from './streamed-kinds.ts';

/*
 * A vendor of every kind of model. Each request says in its text how its reply ends, such as `!e:left !u:1`, and may
 * say which usage the vendor counts: `!p:12 !c:3`.
 */

/** The bytes above which the gateways of these tests give a reply up. */
export const REPLY_BYTES_MAX = 64 * 1024;
/** The usage that the vendor reports: tokens of the prompt, and of the answer. */
export const REPORTED = { prompt: 30, completion: 7 };

/** The text of its answers. */
export const SAID = 'hello to you';

export interface Vendor {
  readonly url: string;
  /** Each reply ends in this way from now on, whatever its request says. */
  answersWith(ending: string): void;
  /** Resolves when a request with this text has arrived. */
  arrived(text: string): Promise<void>;
  /** How many requests with this text have arrived. */
  asked(text: string): number;
}

export async function startVendor(): Promise<Vendor> {
  const asked = new Map<string, PromiseWithResolvers<void>>();
  const counts = new Map<string, number>();
  let always: string | null = null;
  const at = (id: string) => {
    const known = asked.get(id) ?? Promise.withResolvers<void>();
    asked.set(id, known);
    return known;
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('latin1');
      const said = /!k:(\w+) !e:(\w+) !u:(\d) !n:(\w+)/.exec(body);
      if (said === null) return void response.writeHead(400).end('{"error":{"message":"no script"}}');
      const [, kind, ending, reported, id] = said;
      at(id!).resolve();
      counts.set(id!, (counts.get(id!) ?? 0) + 1);
      const counted = / !p:(\d+) !c:(\d+)/.exec(body);
      const tokens = counted === null ? REPORTED : { prompt: Number(counted[1]), completion: Number(counted[2]) };
      const told = ALL_KINDS.find(({ name }) => name === kind)!;
      answer(told, always ?? ending!, reported === '1' ? told.usage(tokens) : null, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    answersWith(ending) {
      always = ending;
    },
    arrived: (id) => at(id).promise,
    asked: (id) => counts.get(id) ?? 0,
  };
}

const DEPTH = 10_000;

/** The same reply, with a member in its object, or in its first event, that is nested deeper than is read. */
const withDepth = (reply: string): string => reply.replace('{', `{"deep":${'['.repeat(DEPTH)}${']'.repeat(DEPTH)},`);

/** `told`: the members of the reply that report a usage; null for none. */
function answer(kind: Kind, ending: string, told: ReturnType<Kind['usage']> | null, response: ServerResponse): void {
  const reported = told !== null;
  const usage = told ?? {};
  const head = () => response.writeHead(200, { 'content-type': kind.type });
  switch (ending) {
    case 'complete':
      return void head().end(kind.reply(SAID, usage));
    case 'empty':
      return void head().end(kind.reply('', usage));
    case 'thought':
      return void head().end(kind.thinks!(usage));
    case 'silent':
      // The usage of a prompt comes first, and nothing else.
      if (reported) head().write(kind.counted!(usage));
      return;
    case 'hung':
      return;
    case 'silent_midway':
      return void head().write(kind.begin!(SAID));
    case 'over_cap':
      return void head().end(kind.reply(`${SAID} `.repeat(3_000), usage));
    case 'left':
      // A vendor that reports answers while the gateway waits for its usage.
      if (reported) setTimeout(() => head().end(kind.reply(SAID, usage)), 50);
      return;
    case 'left_midway':
      head().write(kind.begin!(SAID));
      if (reported) setTimeout(() => response.end(kind.end!(usage)), 50);
      return;
    case 'too_large':
    case 'mute':
      return void head().end(kind.padded!('x'.repeat(2 * REPLY_BYTES_MAX), usage));
    case 'too_large_midway':
      return void head().end(kind.padded!('x'.repeat(2 * REPLY_BYTES_MAX), usage, SAID));
    case 'deep':
      return void head().end(withDepth(String(kind.reply(SAID, usage))));
    case 'deep_midway':
      head().write(kind.begin!(SAID));
      return void setTimeout(() => response.end(withDepth(String(kind.end!(usage)))), 50);
    case 'refused':
      return void response
        .writeHead(429, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error: { message: 'too many' }, ...usage }));
    case 'failed':
      return void response.writeHead(500, { 'content-type': 'application/json' }).end(JSON.stringify(usage));
    case 'malformed':
      return void head().end('{{{');
    case 'lost':
      head().write(kind.begin?.('hello') ?? '{"');
      return void setTimeout(() => response.destroy(), 50);
    default:
      response.writeHead(400).end();
  }
}
