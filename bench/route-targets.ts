import type { Job } from './load/job.ts';
import { chatBody } from './measure.ts';
import { modelsText, passthrough, tollgate, tollgateMissing, type Target, type TargetKind } from './targets.ts';
import { A2A_PATH, MESSAGES } from './upstream/a2a-replies.ts';
import { MODELS } from './upstream/replies.ts';

/** Entries of a batch. */
export const BATCH = 10;

/** Placeholder for the number that makes each message different. */
const NUMBER = '000000000';

/** A message to an agent with a new id each time, because a repeated id would get the stored reply. */
export function messageJobFor(target: Target, reply: keyof typeof MESSAGES, shape: Job['shape']): Job {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: {
      message: {
        messageId: `message-${NUMBER}`,
        role: 'ROLE_USER',
        parts: [{ text: `${MESSAGES[reply]}: which way from the valley to the coast, if the pass is closed?` }],
      },
    },
  });
  const request = requestText(target, body, { 'a2a-version': '1.0' });
  return { port: target.port, request, shape, numberAt: request.lastIndexOf(NUMBER) };
}

/** A batch of chat completions. */
export const batchJobFor = (target: Target, shape: Job['shape']): Job => {
  const params = chatBody(MODELS.small, false);
  const entries = Array.from({ length: BATCH }, (_one, id) => ({
    jsonrpc: '2.0',
    id,
    method: 'chat/completions',
    params,
  }));
  return { port: target.port, request: requestText(target, JSON.stringify(entries), {}), shape };
};

function requestText(target: Target, body: string, more: Readonly<Record<string, string>>): string {
  const headers = {
    host: '127.0.0.1',
    'content-type': 'application/json',
    'content-length': String(body.length),
    ...more,
    ...target.headers,
  };
  return `POST ${target.path} HTTP/1.1\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n${body}`;
}

const AGENT = 'bench-agent';
export const AGENT_PATH = `${A2A_PATH}/${AGENT}`;

export const agentText = (upstreamPort: number) => `
[[agents]]
name = "${AGENT}"
display_name = "Bench"
provider_name = "bench"
endpoint = "http://127.0.0.1:${upstreamPort}"
[agents.pricing]
per_call = 0.001
`;

/** The reference comes first. */
export const A2A_TARGETS: readonly TargetKind[] = [
  {
    name: 'a2a-fastify',
    title: 'Fastify + undici, bytes through (reference)',
    start: (port, nodeArgs) => passthrough('targets/fastify.ts', port, { path: A2A_PATH, nodeArgs }),
  },
  {
    name: 'a2a-tollgate',
    title: 'tollgate, billed, embedded database',
    missing: tollgateMissing,
    start: (port, nodeArgs, main) => tollgate(port, { nodeArgs, main, path: AGENT_PATH, blocks: agentText(port) }),
  },
];

/** The reference comes first. */
export const BATCH_TARGETS: readonly TargetKind[] = [
  {
    name: 'batch-fastify',
    title: 'Fastify + undici, entries through (reference)',
    start: (port, nodeArgs) => passthrough('targets/batch-fastify.ts', port, { path: '/', nodeArgs }),
  },
  {
    name: 'batch-tollgate',
    title: 'tollgate, billed, embedded database',
    missing: tollgateMissing,
    start: (port, nodeArgs) => tollgate(port, { nodeArgs, path: '/api/v1/rpc', blocks: modelsText(port) }),
  },
];
