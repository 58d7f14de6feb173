import { STREAM_HEAD } from './replies.ts';

/** The mock agent's card, and its replies to `SendMessage` and `SendStreamingMessage` of A2A 1.0. */
export const A2A_PATH = '/a2a';
export const CARD_PATH = '/.well-known/agent-card.json';

/** Number of pieces of the artifact that a stream brings. */
export const STREAMED_PIECES = 100;

/** The text of a message decides the agent's answer. */
export const MESSAGES = {
  /** Answers with a message, without a task that could be requested later. */
  message: 'bench-message',
  /** Answers with a completed task. */
  task: 'bench-task',
} as const;

const TEXT =
  'The route goes by the river, as the pass is closed. It takes two days and costs nothing but time. '.repeat(3);

const CARD = JSON.stringify({
  name: 'Bench',
  description: 'Plans routes.',
  version: '1',
  supportedInterfaces: [{ url: `http://127.0.0.1${A2A_PATH}`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'plan', name: 'Plan', description: 'Plans a route.', tags: ['routes'] }],
});

const MESSAGE = JSON.stringify({ message: { messageId: 'answer', role: 'ROLE_AGENT', parts: [{ text: TEXT }] } });

/** Each message starts its own task. */
const taskOf = (messageId: string) =>
  `{"task":{"id":"task-${messageId}","contextId":"context-${messageId}","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-11-21T00:00:00.000Z"},` +
  `"artifacts":[{"artifactId":"route","parts":[{"text":${JSON.stringify(TEXT)}}]}]}}`;

/** A task whose artifact comes in pieces. All is written at once. */
function streamOf(id: string, messageId: string): string {
  const of = { taskId: `task-${messageId}`, contextId: `context-${messageId}` };
  const status = (state: string) => ({ state: `TASK_STATE_${state}`, timestamp: '2026-11-21T00:00:00.000Z' });
  const pieces = Array.from({ length: STREAMED_PIECES }, (_one, index) => ({
    artifactUpdate: {
      ...of,
      artifact: { artifactId: 'route', parts: [{ text: ` word${index % 10}` }] },
      append: index > 0,
      lastChunk: index === STREAMED_PIECES - 1,
    },
  }));
  const results = [
    { task: { id: of.taskId, contextId: of.contextId, status: status('WORKING') } },
    ...pieces,
    { statusUpdate: { ...of, status: status('COMPLETED') } },
  ];
  const events = results.map((result) => `data: {"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}\n\n`);
  const chunks = events.map((event) => `${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`);
  return `${STREAM_HEAD.toString('latin1')}${chunks.join('')}0\r\n\r\n`;
}

/** Returns the whole HTTP reply to a whole HTTP request. */
export function a2aReply(request: string): string {
  if (request.startsWith('GET ')) return http(CARD);
  const id = /"id":("[^"]*"|\d+)/.exec(request)?.[1] ?? 'null';
  const messageId = /"messageId":"([^"]*)"/.exec(request)?.[1] ?? '';
  if (request.includes('"SendStreamingMessage"')) return streamOf(id, messageId);
  const result = request.includes(MESSAGES.task) ? taskOf(messageId) : MESSAGE;
  return http(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
}

const http = (body: string) =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
