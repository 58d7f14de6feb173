import { isObject, type JsonObject } from '#wire';
import { drop, editMembers, isSet, onObject, type Edit } from './edit-members.ts';

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
