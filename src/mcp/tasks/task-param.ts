import { membersOf, type RequestMessage, splice, withMembers } from '#wire';
import { readOwnRequest } from '../wire/own-messages.ts';

/**
 * Removes `params.task` from a `tools/call`. A client of 2025-11-25 asks for a task with it. The gateway does not
 * support such tasks, and the protocol says that the parameter is ignored then. Every other message is unchanged.
 */
export function withoutTaskParam(message: RequestMessage): RequestMessage {
  if (message.method !== 'tools/call' || message.params?.['task'] === undefined) return message;
  const { text } = message;
  return readOwnRequest(splice(text, [withMembers(text, membersOf(text).get('params')!, { task: null })]));
}
