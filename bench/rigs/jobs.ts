import type { Job } from '../load/job.ts';
import type { Target } from '../targets.ts';
import { MODELS } from '../upstream/replies.ts';

export type Protocol = 'chat' | 'tools';

export const LEGACY_TOOL = 'bench-tool';
export const toolText =
  'A tool acts once, so its call is sent once, and what it cost is told beside its result. '.repeat(3);
const REVISION = '2025-06-18';
const NUMBER = '100000000';

type Headers = Readonly<Record<string, string>>;

function requestText(target: Target, body: object, headers: Headers): string {
  const text = JSON.stringify(body);
  const all = {
    host: `127.0.0.1:${target.port}`,
    'content-type': 'application/json',
    'content-length': String(text.length),
    ...headers,
    ...target.headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${target.path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`;
}

const ACCEPT = { accept: 'application/json, text/event-stream' };

/** Opens a session where the gateway has them. Resolves with the headers of the calls in it. */
async function openSession({ port, path, headers }: Target): Promise<Headers> {
  const post = (body: object, more: Headers = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...ACCEPT, ...headers, ...more },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    });
  const params = { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: 'rig', version: '1' } };
  const answer = await post({ id: 1, method: 'initialize', params });
  const told = await answer.text();
  if (answer.status !== 200) throw new Error(`initialize was answered with ${answer.status}: ${told.slice(0, 300)}`);
  const session = answer.headers.get('mcp-session-id');
  const own = { 'mcp-protocol-version': REVISION, ...(session === null ? {} : { 'mcp-session-id': session }) };
  await (await post({ method: 'notifications/initialized' }, own)).arrayBuffer();
  return { ...ACCEPT, ...own };
}

/** The request of a protocol to a target, which is the same for all targets. */
export async function jobFor(protocol: Protocol, target: Target): Promise<(shape: Job['shape']) => Job> {
  const { port } = target;
  if (protocol === 'chat') {
    const body = { model: MODELS.small, messages: [{ role: 'user', content: 'What does a gateway do with a call?' }] };
    const request = requestText(target, body, {});
    return (shape) => ({ port, request, shape });
  }
  const headers = await openSession(target);
  const params = { name: target.tool ?? LEGACY_TOOL, arguments: { topic: 'gateways' } };
  const body = { jsonrpc: '2.0', id: NUMBER, method: 'tools/call', params };
  const request = requestText(target, body, headers);
  // Within a session each call needs an id of its own. It is text, because a number has no zeros before it.
  return (shape) => ({ port, request, numberAt: request.lastIndexOf(NUMBER), shape });
}
