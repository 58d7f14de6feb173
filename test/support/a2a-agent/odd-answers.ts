import type { ServerResponse } from 'node:http';
import type { ReceivedRequest } from './agent.ts';

/**
 * Gives answers that no correct agent gives, before the SDK gets the request. The text of the first part decides:
 *
 * | text | answer |
 * |---|---|
 * | `crash` | HTTP 500 with a text |
 * | `garbage` | HTTP 200 with a body that claims to be JSON but is not |
 * | `cut` | a stream that ends in the middle of its second event, without an end of the HTTP message |
 * | `silent` | the connection stays open without an answer |
 * | `unknown-fields` | a completed task with members that are in no schema, at every level |
 * | `neither` | a JSON-RPC result that is neither a task nor a message |
 *
 * Returns whether it answered.
 */
export function answerOddly(request: ReceivedRequest, response: ServerResponse, legacy: boolean): boolean {
  const text = firstText(request.params);
  const answer = text === null ? undefined : ANSWERS[text.split(' ', 1)[0] ?? ''];
  if (!answer) return false;
  answer({ request, response, legacy });
  return true;
}

interface Odd {
  readonly request: ReceivedRequest;
  readonly response: ServerResponse;
  readonly legacy: boolean;
}

const ANSWERS: Readonly<Record<string, (odd: Odd) => void>> = {
  crash: ({ response }) =>
    void response.writeHead(500, { 'content-type': 'text/plain' }).end('it broke in secret.ts:12'),
  garbage: ({ response }) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":1,"resu<<<'),
  cut: ({ request, response, legacy }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`data: ${enveloped(request, workingTask(legacy))}\n\n`);
    response.write('data: {"jsonrpc":"2.0","id":1,"result":{"statu', () => response.destroy());
  },
  silent: () => {},
  'unknown-fields': ({ request, response, legacy }) => {
    const result = taskWithUnknownFields(legacy);
    if (!streams(request))
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(enveloped(request, result));
    return void response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(`data: ${enveloped(request, result)}\n\n`);
  },
  neither: ({ request, response }) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(enveloped(request, { surprise: true })),
};

const streams = ({ method, path }: ReceivedRequest) =>
  method === 'SendStreamingMessage' || method === 'message/stream' || path.endsWith(':stream');

/** Wraps the result as JSON-RPC if the request was JSON-RPC. For REST it is sent as it is. */
function enveloped(request: ReceivedRequest, result: object): string {
  if (request.method === null) return JSON.stringify(result);
  const { id } = JSON.parse(request.body) as { id: unknown };
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

const workingTask = (legacy: boolean): object =>
  legacy
    ? {
        kind: 'task',
        id: 'cut-task',
        contextId: 'cut-context',
        status: { state: 'working', timestamp: '2026-11-20T10:00:00.000Z' },
      }
    : {
        task: {
          id: 'cut-task',
          contextId: 'cut-context',
          status: { state: 'TASK_STATE_WORKING', timestamp: '2026-11-20T10:00:00.000Z' },
        },
      };

/** A task with members that are in no schema. Its numbers and spaces survive only if the bytes are copied. */
function taskWithUnknownFields(legacy: boolean): object {
  const part = { ...(legacy ? { kind: 'text' } : {}), text: 'known', xPart: { deep: [1, { er: true }] } };
  const task = {
    ...(legacy ? { kind: 'task' } : {}),
    id: 'odd-task',
    contextId: 'odd-context',
    status: {
      state: legacy ? 'completed' : 'TASK_STATE_COMPLETED',
      timestamp: '2026-11-20T10:00:00.000Z',
      xStatus: 'kept',
    },
    artifacts: [{ artifactId: 'a1', parts: [part], xArtifact: [] }],
    metadata: { anything: { goes: 1.5 } },
    xTask: { 'a-key': null },
  };
  return legacy ? task : { task, xResult: 7 };
}

/**
 * The text of the first part of a message: `params.message.parts[0].text` in JSON-RPC, `message.parts` or (in 0.3)
 * `message.content` in REST.
 */
function firstText(params: unknown): string | null {
  const { message } = (params ?? {}) as { message?: { parts?: unknown; content?: unknown } };
  const parts = message?.parts ?? message?.content;
  const text = Array.isArray(parts) ? (parts[0] as { text?: unknown } | undefined)?.text : null;
  return typeof text === 'string' ? text : null;
}
