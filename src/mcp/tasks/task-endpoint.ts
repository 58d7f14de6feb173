import { type Answer, errorText, GatewayError, type RequestMessage, splice, withMembers } from '#wire';
import type { Config } from '#config';
import { pinned, type Pipeline } from '#gateway';
import { ownerOf, type Task, type Tasks } from '#tasks';
import { runFreeCall } from '../call/free-call.ts';
import { readOwnRequest } from '../wire/own-messages.ts';
import { ERROR, MODERN, modernStatusOf } from '../wire/revisions.ts';
import { ownMeta, traceOf, type RequestContext, type StatelessRequest } from '../call/stateless.ts';
import { atServer } from './ask-of-task.ts';
import { declaresTasks, TASKS } from './extension.ts';
import { isEnd } from './read-task.ts';
import { notFound, taskAttempt, type TaskAdapterDeps } from './task-attempt.ts';

export interface TaskEndpointDeps extends TaskAdapterDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly tasks: Pick<Tasks, 'begin' | 'saw' | 'findAll'>;
  readonly receipts: Config['billing']['receipts'];
}

/** The address to which a request about a task was sent. */
export interface TaskAddress {
  /** Whether tasks of a service can be used at this address. */
  includes(service: string): boolean;
  /** Changes a message of a service for the client. */
  toClient(text: string, service: string): string;
}

/**
 * Answers requests about tasks. Each goes to the provider that began the task. A task of another owner is not found.
 * Throws GatewayError.
 */
type TaskEndpoint = (
  address: TaskAddress,
  request: StatelessRequest,
  context: RequestContext,
  answer: Answer,
) => Promise<void>;

export function createTaskEndpoint(deps: TaskEndpointDeps): TaskEndpoint {
  return async (address, { message: asked, capabilities }, context, answer) => {
    const { idText } = asked;
    if (!declaresTasks(capabilities)) return answer.end(undeclared(asked), modernStatusOf(ERROR.missingCapability));
    const taskId = asked.params?.['taskId'];
    if (typeof taskId !== 'string')
      throw new GatewayError('invalid_request', 'params.taskId must be the id of a task', { param: 'params.taskId' });
    const own = ownMeta(asked, context.headers, deps.receipts);
    const found = await deps.tasks.findAll('tool', taskId, ownerOf(context.caller));
    const task = found.find(({ service }) => address.includes(service));
    if (!task || (!task.live && !isEnd(task.state))) {
      const { text, status } = notFound(
        idText,
        task ? 'The task was given up because its time was over. Nothing is charged for it' : undefined,
      );
      return answer.end(text, status);
    }
    const call = {
      caller: context.caller,
      requestId: context.requestId,
      target: pinned(task.offerId),
      method: asked.method,
      startAttempt: taskAttempt(deps, { message: forServer(own.message, task), wantsReceipt: own.wantsReceipt }, task),
      traceparent: traceOf(context.headers, asked),
      facts: () => ({ 'mcp.protocol.version': MODERN }),
    };
    const tail = await runFreeCall(deps.pipeline, call, context.gone);
    if (tail === null) return answer.close();
    answer.end(address.toClient(tail.text, task.service), tail.status);
  };
}

/** The request with the task's id at its server. */
function forServer({ text, members }: RequestMessage, task: Task): RequestMessage {
  const taskId = JSON.stringify(atServer(task));
  return readOwnRequest(splice(text, [withMembers(text, members.get('params')!, { taskId })]));
}

function undeclared({ idText, method }: RequestMessage): string {
  const requiredCapabilities = { extensions: { [TASKS]: {} } };
  const message = `To use ${method}, declare the extension ${TASKS} in the capabilities of the request`;
  return errorText(idText, { code: ERROR.missingCapability, message, data: { requiredCapabilities } });
}
