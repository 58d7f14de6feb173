import { isObject, membersOf, type NotificationMessage, splice } from '#wire';
import { META, rankOfLevel } from '../../../wire/revisions.ts';
import type { McpRequest } from '../../../request/mcp-request.ts';
import { progressTokenOf } from './request-text.ts';
import type { SessionCall } from './session-call.ts';

/**
 * A notification about a call, as text for the client. Progress gets the client's own token. Log messages pass from the
 * level that the client asked for. Null for a notification that is not for the client.
 */
export function toClientNotification(
  mcpRequest: McpRequest,
  call: Pick<SessionCall, 'id'>,
  message: NotificationMessage,
): string | null {
  const { method, params, text, members } = message;
  switch (method) {
    case 'notifications/message': {
      const level = levelOf(mcpRequest);
      return level !== null && rankOfLevel(params?.['level']) >= rankOfLevel(level) ? text : null;
    }
    case 'notifications/progress': {
      const token = progressTokenOf(mcpRequest.message);
      if (token === null || params?.['progressToken'] !== call.id) return null;
      return splice(text, [{ ...membersOf(text, members.get('params')!.start).get('progressToken')!, text: token }]);
    }
    // The modern revision does not have this notification. The client itself must notice that its page is done.
    case 'notifications/elicitation/complete':
      return null;
    default:
      return text;
  }
}

/** The lowest level of log messages that the client wants; null if it wants none. */
export function levelOf({ client, message }: McpRequest): string | null {
  const meta = message.params?.['_meta'];
  const level = client === 'modern' && isObject(meta) ? meta[META.logLevel] : null;
  return typeof level === 'string' ? level : null;
}
