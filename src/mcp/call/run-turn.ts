import type { Answer } from '#wire';
import type { Leaving } from '#billing/amounts';
import type { AnswerCall } from './answer-call.ts';
import { turnCall, type TurnCall, type TurnCallDeps } from './turn-call.ts';
import type { UnlistedTool } from './unlisted-tool.ts';
import type { McpTail, Turn } from '../turn/turn.ts';

interface RunTurnDeps extends TurnCallDeps {
  readonly answerCall: AnswerCall;
  readonly unlistedTool: UnlistedTool;
}

/** A request in the form that the door knows, with its turn. */
export interface TurnRequest extends TurnCall {
  readonly turn: Omit<Turn, 'callId' | 'left'>;
  /** null without a key. */
  readonly idempotencyKey: string | null;
}

export type RunTurn = (request: TurnRequest, answer: Answer, gone: Leaving) => Promise<void>;

/**
 * Takes one request to a server through the pipeline and writes its answer. Never rejects: an error becomes the answer.
 */
export function createRunTurn({ answerCall, unlistedTool, ...deps }: RunTurnDeps): RunTurn {
  return (request, answer, gone) => {
    const { message, client, caller, continued, service } = request.turn;
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
      request: (callId: string, left: Leaving) => turnCall(deps, request, { ...request.turn, callId, left }),
      unlisted: () => unlistedTool(target, message),
      events: (bytes: Uint8Array) => bytes,
      response: (tail: unknown) => tail as McpTail | null,
    };
    return answerCall(asked, answer, gone);
  };
}
