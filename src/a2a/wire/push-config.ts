import { isObject, type JsonObject } from '#wire';
import type { A2aVersion } from './protocol.ts';
import { drop, editMembers, isSet, onObject, type Edit } from './edit-json.ts';

/** The URL and credentials for notifications of a task, independent of the version. */
export interface PushConfig {
  readonly id: string | null;
  /** null if the configuration is part of a send, because its task is not known yet. */
  readonly taskId: string | null;
  readonly url: string;
  readonly token: string | null;
  readonly authentication: { readonly scheme: string; readonly credentials: string | null } | null;
}

const ID_CHARS_MAX = 256;
const URL_CHARS_MAX = 2_048;
const SECRET_CHARS_MAX = 8_192;
const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;

/**
 * Reads a push notification configuration: the parameters and the result of `push-set`, the result of `push-get`, and
 * (inline) the one in a send. Returns a text that names the wrong member if it is not valid. The caller must check
 * whether the URL may be called.
 */
export function readPushConfig(
  version: A2aVersion,
  value: unknown,
  { inline = false }: { readonly inline?: boolean } = {},
): PushConfig | string {
  if (!isObject(value)) return 'params must be an object';
  const inner = version === '1.0' ? value : value['pushNotificationConfig'];
  const path = version === '1.0' ? (inline ? 'taskPushNotificationConfig.' : '') : 'pushNotificationConfig.';
  if (!isObject(inner)) return 'pushNotificationConfig must be an object';
  const taskId = inline ? null : textOf(value['taskId'], ID_CHARS_MAX);
  if (!inline && taskId === null) return `taskId must be a string of 1 to ${ID_CHARS_MAX} characters`;
  const url = textOf(inner['url'], URL_CHARS_MAX);
  if (url === null) return `${path}url must be a URL of at most ${URL_CHARS_MAX} characters`;
  const id = textOf(inner['id'], ID_CHARS_MAX);
  if (id === null && !isEmpty(inner['id'])) return `${path}id must be a string of 1 to ${ID_CHARS_MAX} characters`;
  const token = textOf(inner['token'], SECRET_CHARS_MAX);
  if (token === null && !isEmpty(inner['token']))
    return `${path}token must be a string of at most ${SECRET_CHARS_MAX} characters`;
  const authentication = isEmpty(inner['authentication']) ? null : readAuthentication(version, inner['authentication']);
  if (typeof authentication === 'string') return `${path}authentication${authentication}`;
  return { id, taskId, url, token, authentication };
}

/** 0.3 lists schemes, from which the agent chooses. Here the first counts, because 1.0 has only one. */
function readAuthentication(version: A2aVersion, value: unknown): PushConfig['authentication'] | string {
  if (!isObject(value)) return ' must be an object';
  const schemes: unknown = value['schemes'];
  const scheme: unknown = version === '1.0' ? value['scheme'] : Array.isArray(schemes) ? schemes[0] : undefined;
  if (version === '0.3' && isEmptyList(schemes)) return null;
  if (typeof scheme !== 'string' || !SCHEME.test(scheme)) {
    return version === '1.0'
      ? '.scheme must be the name of an HTTP authentication scheme'
      : '.schemes must be an array of names of HTTP authentication schemes';
  }
  const credentials = textOf(value['credentials'], SECRET_CHARS_MAX);
  if (credentials === null && !isEmpty(value['credentials']))
    return `.credentials must be a string of at most ${SECRET_CHARS_MAX} characters`;
  return { scheme, credentials };
}

/**
 * Writes a configuration in the form of a version: as the parameters and the result of `push-set`, or (inline) as the
 * one in a send, without its wrapper.
 */
export function writePushConfig(
  version: A2aVersion,
  config: PushConfig,
  { inline = false }: { readonly inline?: boolean } = {},
): JsonObject {
  const { id, taskId, url, token, authentication } = config;
  const inner = {
    ...(id === null ? {} : { id }),
    ...(version === '1.0' && !inline && taskId !== null ? { taskId } : {}),
    url,
    ...(token === null ? {} : { token }),
    ...(authentication === null ? {} : { authentication: writeAuthentication(version, authentication) }),
  };
  return version === '1.0' || inline
    ? inner
    : { ...(taskId === null ? {} : { taskId }), pushNotificationConfig: inner };
}

function writeAuthentication(
  version: A2aVersion,
  { scheme, credentials }: NonNullable<PushConfig['authentication']>,
): JsonObject {
  return {
    ...(version === '1.0' ? { scheme } : { schemes: [scheme] }),
    ...(credentials === null ? {} : { credentials }),
  };
}

const textOf = (value: unknown, max: number): string | null =>
  typeof value === 'string' && value !== '' && value.length <= max ? value : null;
const isEmpty = (value: unknown): boolean => value === undefined || value === null || value === '';
const isEmptyList = (value: unknown): boolean => isEmpty(value) || (Array.isArray(value) && value.length === 0);

/** 0.3 has a list of schemes; 1.0 has one scheme. */
const authenticationTo10: Edit = onObject((authentication) => ({
  scheme: '',
  ...editMembers(authentication, {
    schemes: ['scheme', (schemes) => (Array.isArray(schemes) ? ((schemes as unknown[])[0] ?? '') : schemes)],
  }),
}));

const authenticationTo03: Edit = onObject((authentication) => ({
  schemes: [],
  ...editMembers(authentication, { scheme: ['schemes', (scheme) => (isSet(scheme) && scheme !== '' ? [scheme] : [])] }),
}));

/** Translates the configuration in a send from 0.3 to 1.0. It belongs to the task that the send begins. */
export const inlinePushTo10: Edit = onObject((config) =>
  editMembers(config, { authentication: authenticationTo10, taskId: drop, tenant: drop }),
);

/** Translates the configuration in a send from 1.0 to 0.3, which has neither a task nor a tenant there. */
export const inlinePushTo03: Edit = onObject((config) =>
  editMembers(config, { authentication: authenticationTo03, taskId: drop, tenant: drop }),
);

/**
 * Translates from 0.3 to 1.0 the parameters of `push-set` and the results of set and get. The task comes from the outer
 * object. `id`, `url`, `token` and `authentication` come only from the inner configuration, so that the members that
 * were checked are the members that are sent.
 */
export const pushTo10: Edit = onObject((config) => {
  const {
    pushNotificationConfig: inner,
    taskId,
    tenant: _,
    id: _id,
    url: _url,
    token: _token,
    authentication: _authentication,
    ...others
  } = config;
  if (!isObject(inner)) return config;
  return { ...(taskId === undefined ? {} : { taskId }), ...others, ...(inlinePushTo10(inner) as JsonObject) };
});

/** Translates from 1.0 to 0.3: all members except the task go into the inner configuration. */
export const pushTo03: Edit = onObject((config) => ({
  ...(config['taskId'] === undefined ? {} : { taskId: config['taskId'] }),
  pushNotificationConfig: inlinePushTo03(config),
}));

/** Translates a list from 0.3 to 1.0: an array becomes a single page. */
export const pushListTo10: Edit = (result) =>
  Array.isArray(result) ? { configs: result.map((one: unknown) => pushTo10(one)) } : result;

/** Translates a list from 1.0 to 0.3: a page becomes an array. ProtoJSON leaves out an empty list. */
export const pushListTo03: Edit = onObject(({ configs = [] }) =>
  Array.isArray(configs) ? configs.map((one: unknown) => pushTo03(one)) : configs,
);
