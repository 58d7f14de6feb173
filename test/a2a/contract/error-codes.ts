/** The errors of A2A: JSON-RPC code, HTTP status and the reason of the ErrorInfo (§5.4, §11.6). */
export const ERRORS = {
  taskNotFound: { code: -32001, status: 404, reason: 'TASK_NOT_FOUND' },
  taskNotCancelable: { code: -32002, status: 400, reason: 'TASK_NOT_CANCELABLE' },
  pushNotificationNotSupported: { code: -32003, status: 400, reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED' },
  unsupportedOperation: { code: -32004, status: 400, reason: 'UNSUPPORTED_OPERATION' },
  contentTypeNotSupported: { code: -32005, status: 400, reason: 'CONTENT_TYPE_NOT_SUPPORTED' },
  invalidAgentResponse: { code: -32006, status: 500, reason: 'INVALID_AGENT_RESPONSE' },
  extendedCardNotConfigured: { code: -32007, status: 400, reason: 'EXTENDED_AGENT_CARD_NOT_CONFIGURED' },
  versionNotSupported: { code: -32009, status: 400, reason: 'VERSION_NOT_SUPPORTED' },
  invalidParams: { code: -32602, status: 400, reason: 'INVALID_PARAMS' },
} as const;

export type ErrorName = keyof typeof ERRORS;

export const ERROR_REASONS: ReadonlyMap<string, number> = new Map(
  Object.values(ERRORS).map(({ reason, code }) => [reason, code]),
);
