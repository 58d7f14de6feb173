import { membersOf, type RequestMessage, splice, withMembers } from '#wire';
import { readOwnRequest } from '../wire/own-messages.ts';

/**
 * A `tools/call` without `params.task`, by which a client of 2025-11-25 asks for a task. Such tasks are not
 * carried, and the protocol says to ignore the parameter then. Every other message stays as it is.
 */
export function withoutTaskParam(message: RequestMessage): RequestMessage {
  if (message.method !== 'tools/call' || message.params?.['task'] === undefined) return message;
  const { text } = message;
  return readOwnRequest(splice(text, [withMembers(text, membersOf(text).get('params')!, { task: null })]));
}
