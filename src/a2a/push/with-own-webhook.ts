import { membersOf, splice, withMembers } from '#wire';
import type { A2aVersion } from '../wire/protocol.ts';

const NAMES = { '0.3': 'pushNotificationConfig', '1.0': 'taskPushNotificationConfig' } as const satisfies Record<
  A2aVersion,
  string
>;
/**
 * Names of drafts and of other spellings. They are removed too, so that no agent reads a client's webhook from them.
 */
const FOREIGN = [
  'pushNotification',
  'push_notification_config',
  'task_push_notification_config',
  'push_notification',
] as const;

/**
 * Replaces the client's webhook with the gateway's in the parameters of a send, which are JSON text in the agent's
 * version. The gateway keeps the client's address and secrets, and notifies the client itself. `url` null: removes the
 * webhook.
 */
export function withOwnWebhook(version: A2aVersion, paramsText: string, url: string | null): string {
  const configuration = membersOf(paramsText).get('configuration');
  const own = url === null ? null : JSON.stringify({ url });
  const change: Record<string, string | null> = Object.fromEntries(
    [...Object.values(NAMES), ...FOREIGN].map((name) => [name, null]),
  );
  change[NAMES[version]] = own;
  if (configuration && paramsText[configuration.start] === '{')
    return splice(paramsText, [withMembers(paramsText, configuration, change)]);
  if (own === null) return paramsText;
  const whole = { start: paramsText.indexOf('{'), end: paramsText.lastIndexOf('}') + 1 };
  return splice(paramsText, [
    withMembers(paramsText, whole, { configuration: `{${JSON.stringify(NAMES[version])}:${own}}` }),
  ]);
}
