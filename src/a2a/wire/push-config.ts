import { isObject, type JsonObject } from '#wire';
import type { A2aVersion } from './version.ts';

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
