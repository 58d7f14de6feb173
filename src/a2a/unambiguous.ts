import { isObject, membersAlong, RawJsonError, type JsonObject } from '#gateway';
import { A2aError } from './wire/a2a-error.ts';

/** What the gateway acts on before it passes the rest on as it came. */
const ACTED_ON = {
  params: ['id', 'taskId', 'tenant', 'message', 'metadata', 'configuration'],
  message: ['messageId', 'taskId', 'contextId', 'referenceTaskIds', 'metadata'],
  configuration: ['pushNotificationConfig', 'taskPushNotificationConfig'],
} as const;

/** Names of the protocol are shorter. */
const NAME_CHARS_MAX = 64;

/** Agents built on ProtoJSON take `task_id` for `taskId`, those in Go every spelling that differs in case, the long s and the Kelvin sign included. */
const folded = (name: string): string => name.normalize('NFKC').toLowerCase().replaceAll('_', '');

const TABLES = Object.entries(ACTED_ON).map(([holder, names]) => ({
  holder,
  exact: new Set<string>(names),
  folded: new Map(names.map((name) => [folded(name), name])),
}));

/**
 * Refuses parameters that an agent could read otherwise than the gateway did: whose task a message is for, and what it costs, must be the same to both.
 * Throws A2aError `InvalidParams` for a spelling that is nearly that of a member which counts.
 */
export function refuseLookAlikes(params: JsonObject): void {
  for (const { holder, exact, folded: names } of TABLES) {
    const members = holder === 'params' ? params : params[holder];
    if (!isObject(members)) continue;
    for (const name of Object.keys(members)) {
      if (exact.has(name) || name.length > NAME_CHARS_MAX) continue;
      const meant = names.get(folded(name));
      const path = holder === 'params' ? '' : `${holder}.`;
      if (meant !== undefined) throw new A2aError('InvalidParams', `${path}${name} must be written ${meant}`, { param: `${path}${meant}` });
    }
  }
}

/** Refuses JSON text of parameters in which a key stands twice: readers differ in which one they take. Throws A2aError `InvalidParams`. */
export function refuseRepeatedKeys(paramsText: string): void {
  try {
    if (membersAlong(paramsText, ['message', 'metadata']).has('configuration')) membersAlong(paramsText, ['configuration']);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    throw new A2aError('InvalidParams', `The parameters cannot be read in one way alone: ${error.message}`);
  }
}
