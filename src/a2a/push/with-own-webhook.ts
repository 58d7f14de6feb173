import { membersOf, splice, withMembers } from '#wire';
import type { A2aVersion } from '../wire/version.ts';

const NAMES = { '0.3': 'pushNotificationConfig', '1.0': 'taskPushNotificationConfig' } as const satisfies Record<
  A2aVersion,
  string
>;
/** Of drafts and of the other version: no agent is to read a client's from there either. */
const FOREIGN = [
  'pushNotification',
  'push_notification_config',
  'task_push_notification_config',
  'push_notification',
] as const;

/**
 * The parameters of a send, as JSON text in the agent's version, with the gateway's webhook in place of the
 * client's. The client's address and secrets stay with the gateway, which notifies it. `url` null: without a
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
