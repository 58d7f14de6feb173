import { isObject, type JsonObject } from '#wire';
import { each, editMembers, onObject, type Edit } from './edit-json.ts';
import { eventOf, stateOf } from './events.ts';
import { messageTo10, taskTo10 } from './translate.ts';

/*
 * The bare form of the interface specification (section 4.10): `POST /a2a` with `{message: {messageId, role, parts:
 * [{text}]}}` and no JSON-RPC envelope. The reply is the task itself, `{id, status: {state}, artifacts: [{parts}]}`.
 * Its parts have the form of 1.0; its roles and states have the names of 0.3. This file translates it to 1.0 and back.
 */

/** Whether a parsed body has the bare form: a message without members of JSON-RPC. */
export function isBareBody(body: unknown): body is JsonObject {
  return (
    isObject(body) &&
    isObject(body['message']) &&
    !['jsonrpc', 'method', 'result', 'error', 'task'].some((name) => Object.hasOwn(body, name))
  );
}

/** Turns a bare body into the parameters of a send in 1.0. Parts of 0.3 (`kind`) are accepted too. */
export const sendFromBare = (body: JsonObject): JsonObject => editMembers(body, { message: messageTo10 });

const messageToBare: Edit = onObject((message) =>
  editMembers(message, { role: (role) => (role === 'ROLE_AGENT' || role === 2 ? 'agent' : 'user') }),
);

/** Turns the parameters of a send in 1.0 into a bare body, for agents that use the bare form. */
export const bareFromSend = (params: JsonObject): JsonObject => editMembers(params, { message: messageToBare });

const statusToBare: Edit = onObject((status) => editMembers(status, { state: stateOf, message: messageToBare }));

/**
 * Turns a result of a send in 1.0 into the bare reply; null for any other value. The bare form knows only tasks, so an
 * agent's message becomes a completed task with the message's parts as its only artifact.
 */
export function bareFromResult(result: unknown): JsonObject | null {
  const event = eventOf('1.0', result);
  if (event?.kind === 'task') return editMembers(event.value, { status: statusToBare, history: each(messageToBare) });
  if (event?.kind !== 'message') return null;
  const { messageId, taskId, contextId, parts, metadata } = event.value;
  return {
    id: typeof taskId === 'string' && taskId !== '' ? taskId : messageId,
    ...(contextId === undefined ? {} : { contextId }),
    status: { state: 'completed' },
    artifacts: [{ artifactId: messageId, parts }],
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/**
 * Turns the bare reply of an agent into a result of a send in 1.0; null for a value that is neither a task nor a
 * message.
 */
export function resultFromBare(reply: unknown): JsonObject | null {
  const event = eventOf('1.0', reply);
  if (event === null || event.kind === 'status' || event.kind === 'artifact') return null;
  if (event.kind === 'message') return { message: messageTo10(event.value) };
  return { task: taskTo10(event.value) };
}
