import { randomUUID } from 'node:crypto';
import { isObject, type JsonObject } from '#wire';
import { outboundUrlFault } from '#security';
import { ownerOf, type Task, type TaskKey, type TaskOwner, type Tasks } from '#tasks';
import { WEBHOOK_NAME_CHARS_MAX, WEBHOOKS_PER_TASK_MAX, type Webhook, type Webhooks } from '#webhooks';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { ReplyWriter } from '../protocol/reply-writer.ts';
import { keyOf } from '../protocol/agent-tasks.ts';
import { A2aError } from '../wire/errors.ts';
import { type A2aOperation, type A2aVersion, VERSION_HEADER } from '../wire/protocol.ts';
import { readPushConfig, writePushConfig, type PushConfig } from '../wire/push-config.ts';

interface PushConfigsOptions {
  readonly webhooks: Pick<Webhooks, 'set' | 'list' | 'delete'>;
  readonly tasks: Pick<Tasks, 'find'>;
  readonly allowPrivate: boolean;
}

/** The configurations of push notifications that clients give, alone or in a message. */
export interface PushConfigs {
  /**
   * Answers the operations on configurations of the caller's own tasks. `set` is called when a task got a
   * configuration, before the answer is written. `set` must not reject.
   */
  answer(ask: A2aRequest, reply: ReplyWriter, set: (task: Task) => Promise<void>): Promise<void>;
  /** Checks a configuration in a message. Throws A2aError `InvalidParams` if it cannot be stored. */
  check(ask: A2aRequest, config: PushConfig): void;
  /** Stores the configuration of a message for its task, unless the task has the same already. */
  keep(ask: A2aRequest, service: string, taskId: string, config: PushConfig): Promise<void>;
}

type PushOperation = Extract<A2aOperation, `push-${string}`>;

/** A stored configuration, which always has an id and a task. */
type KeptConfig = PushConfig & { readonly id: string; readonly taskId: string };

/** Characters that are allowed in a header value. */
const HEADER_TEXT = /^[!-~](?:[ -~]*[!-~])?$/;

/**
 * Push notification configurations for the caller's own tasks, at agents of every kind, because the gateway itself
 * sends the notifications. Throws A2aError `TaskNotFound`, also for an unknown configuration (1.0 section 3.1.8), or
 * `InvalidParams`.
 */
export function createPushConfigs({ webhooks, tasks, allowPrivate }: PushConfigsOptions): PushConfigs {
  const set = async (
    key: TaskKey,
    owner: TaskOwner,
    version: A2aVersion,
    newConfig: PushConfig,
    path: string,
  ): Promise<KeptConfig> => {
    checkConfig(newConfig, path);
    // A client of 0.3 that names no id has only one configuration and means it.
    const config = {
      ...newConfig,
      id: newConfig.id ?? (version === '0.3' ? key.taskId : randomUUID()),
      taskId: key.taskId,
    };
    if (!(await webhooks.set(key, owner, toWebhook(version, config))))
      throw new A2aError(
        'InvalidParams',
        `There are too many push notification configurations: a task has at most ${WEBHOOKS_PER_TASK_MAX}`,
      );
    return config;
  };

  const checkConfig = ({ id, url, token, authentication }: PushConfig, path: string) => {
    const fault = outboundUrlFault(url, { allowPrivate });
    if (fault !== null) throw wrong(`${path}url`, fault);
    if (id !== null && id.length > WEBHOOK_NAME_CHARS_MAX)
      throw wrong(`${path}id`, `must have at most ${WEBHOOK_NAME_CHARS_MAX} characters`);
    if (id?.includes('\0')) throw wrong(`${path}id`, 'has the character U+0000, which cannot be stored');
    if (token !== null && !HEADER_TEXT.test(token))
      throw wrong(`${path}token`, 'must be printable ASCII, because it is sent in a header');
    const credentials = authentication?.credentials ?? null;
    if (credentials !== null && !HEADER_TEXT.test(credentials))
      throw wrong(`${path}authentication.credentials`, 'must be printable ASCII, because it is sent in a header');
  };

  const find = async (key: TaskKey, owner: TaskOwner, id: string | null): Promise<KeptConfig> => {
    const all = await webhooks.list(key, owner);
    // A request of 0.3 may name no id. A configuration that was made without an id has the id of its task.
    const webhook =
      id === null ? (all.find(({ name }) => name === key.taskId) ?? all[0]) : all.find(({ name }) => name === id);
    if (!webhook)
      throw new A2aError('TaskNotFound', 'There is no such push notification configuration', {
        metadata: { taskId: key.taskId },
      });
    return configOf(key, webhook);
  };

  const results = {
    'push-set': async (key, owner, { version, params }) => {
      const config = readPushConfig(version, params);
      if (typeof config === 'string')
        throw new A2aError('InvalidParams', config, { param: /^[\w.[\]]+/.exec(config)?.[0] });
      return shownConfig(
        version,
        await set(key, owner, version, config, version === '1.0' ? '' : 'pushNotificationConfig.'),
      );
    },
    'push-get': async (key, owner, { version, params }) =>
      shownConfig(version, await find(key, owner, idIn(version, params))),
    'push-list': async (key, owner, { version }) => {
      const all = (await webhooks.list(key, owner)).map((webhook) => shownConfig(version, configOf(key, webhook)));
      return version === '1.0' ? { configs: all } : all;
    },
    'push-delete': async (key, owner, { version, params }) => {
      const id = idIn(version, params);
      if (id === null)
        throw wrong(
          version === '1.0' ? 'id' : 'pushNotificationConfigId',
          'must be a string: the id of a configuration',
        );
      await webhooks.delete(key, owner, id);
      return version === '1.0' ? {} : null;
    },
  } satisfies Record<PushOperation, (key: TaskKey, owner: TaskOwner, ask: A2aRequest) => Promise<unknown>>;

  return {
    async answer(ask, out, onSet) {
      const key = keyOf(ask.service, taskIdIn(ask));
      const owner = ownerOf(ask.caller);
      const task = await tasks.find(key, owner);
      if (task === null) throw new A2aError('TaskNotFound', 'Task not found', { metadata: { taskId: key.taskId } });
      const result = await results[ask.operation as PushOperation](key, owner, ask);
      if (ask.operation === 'push-set') await onSet(task);
      await out.result(JSON.stringify(result));
    },

    check: ({ version }, config) => checkConfig(config, INLINE_PATHS[version]),

    async keep({ caller, version }, service, taskId, config) {
      const key = keyOf(service, taskId);
      const owner = ownerOf(caller);
      // A repeat of a message has the configuration of the first again, perhaps without an id.
      const all = config.id === null ? await webhooks.list(key, owner) : [];
      if (all.some((webhook) => isSame(configOf(key, webhook), config))) return;
      await set(key, owner, version, config, INLINE_PATHS[version]);
    },
  };
}

const isSame = (config: KeptConfig, { url, token, authentication }: PushConfig): boolean =>
  config.url === url &&
  config.token === token &&
  JSON.stringify(config.authentication) === JSON.stringify(authentication);

const INLINE_PATHS = {
  '0.3': 'configuration.pushNotificationConfig.',
  '1.0': 'configuration.taskPushNotificationConfig.',
} as const satisfies Record<A2aVersion, string>;

const wrong = (param: string, fault: string) => new A2aError('InvalidParams', `${param} ${fault}`, { param });

/** The id of the task in the parameters. 1.0 always names it `taskId`; 0.3 does so only when a configuration is set. */
function taskIdIn({ operation, version, params }: A2aRequest): string {
  const name = version === '1.0' || operation === 'push-set' ? 'taskId' : 'id';
  const taskId = params[name];
  if (typeof taskId !== 'string' || taskId === '') throw wrong(name, 'must be a string: the id of a task');
  return taskId;
}

function idIn(version: A2aVersion, params: JsonObject): string | null {
  const id = params[version === '1.0' ? 'id' : 'pushNotificationConfigId'];
  return typeof id === 'string' && id !== '' ? id : null;
}

function toWebhook(version: A2aVersion, { id, url, token, authentication }: KeptConfig): Webhook {
  const credentials = authentication?.credentials ?? null;
  return {
    name: id,
    form: version,
    url,
    headers: {
      [VERSION_HEADER]: version,
      ...(token === null ? {} : { 'x-a2a-notification-token': token }),
      ...(authentication === null || credentials === null
        ? {}
        : { authorization: `${authentication.scheme} ${credentials}` }),
    },
    notes: JSON.stringify({ token, authentication }),
  };
}

/**
 * A configuration as an answer shows it: without `token` and `credentials`. The gateway sends these only to the
 * receiver. Both members are optional in every version.
 */
const shownConfig = (version: A2aVersion, { authentication, ...config }: KeptConfig): JsonObject =>
  writePushConfig(version, {
    ...config,
    token: null,
    authentication: authentication && { ...authentication, credentials: null },
  });

function configOf({ taskId }: TaskKey, { name, url, notes }: Webhook): KeptConfig {
  const secret = JSON.parse(notes) as Pick<PushConfig, 'token' | 'authentication'> | null;
  const { token = null, authentication = null } = isObject(secret) ? secret : {};
  return { id: name, taskId, url, token, authentication };
}
