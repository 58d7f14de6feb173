import type { Answer } from '#wire';
import type { CancelSignal } from '#billing/amounts';
import type { AnswerCall } from './answer-call.ts';
import { requestCall, type RequestCall, type RequestCallDeps } from './request-call.ts';
import type { UnlistedTool } from './unlisted-tool.ts';
import type { McpTail, McpRequest } from '../request/mcp-request.ts';

interface RunRequestDeps extends RequestCallDeps {
  readonly answerCall: AnswerCall;
  readonly unlistedTool: UnlistedTool;
}

/** A request in the form that the route knows, with its turn. */
export interface RequestToRun extends RequestCall {
  readonly mcpRequest: Omit<McpRequest, 'callId' | 'left'>;
  /** null without a key. */
  readonly idempotencyKey: string | null;
}

export type RunRequest = (request: RequestToRun, answer: Answer, gone: CancelSignal) => Promise<void>;

/**
 * Takes one request to a server through the pipeline and writes its answer. Never rejects: an error becomes the answer.
 */
export function createRunRequest({ answerCall, unlistedTool, ...deps }: RunRequestDeps): RunRequest {
  return (request, answer, gone) => {
    const { message, client, caller, continued, service } = request.mcpRequest;
    const { rule, idempotencyKey, payment = null, target } = request;
    const asked = {
      message,
      client,
      caller,
      continued,
      service,
      free: rule.billing === 'free',
      idempotencyKey,
      payment,
      target,
      request: (callId: string, left: CancelSignal) =>
        requestCall(deps, request, { ...request.mcpRequest, callId, left }),
      unlisted: () => unlistedTool(target, message),
      events: (bytes: Uint8Array) => bytes,
      response: (tail: unknown) => tail as McpTail | null,
    };
    return answerCall(asked, answer, gone);
  };
}
