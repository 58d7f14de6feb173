import { isObject, type JsonObject } from '#wire';
import { drop, editMembers, isSet, onObject, type Edit } from './edit-members.ts';

/** 0.3 lists schemes; 1.0 has one. */
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

/** 0.3 → 1.0 of the configuration that stands in a send: it belongs to the task that the send makes. */
export const inlinePushTo10: Edit = onObject((config) =>
  editMembers(config, { authentication: authenticationTo10, taskId: drop, tenant: drop }),
);

/** 1.0 → 0.3, which has no place for a task in it, and none for a tenant at all. */
export const inlinePushTo03: Edit = onObject((config) =>
  editMembers(config, { authentication: authenticationTo03, taskId: drop, tenant: drop }),
);

/**
 * 0.3 → 1.0 of the parameters of `push-set` and of the results of set and get. The task is the outer one. The rest is
 * the inner configuration's, whatever stands beside it: the checked members must be those that are sent.
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

/** 1.0 → 0.3: everything but the task is the inner configuration's. */
export const pushTo03: Edit = onObject((config) => ({
  ...(config['taskId'] === undefined ? {} : { taskId: config['taskId'] }),
  pushNotificationConfig: inlinePushTo03(config),
}));

/** 0.3 → 1.0 of a list: an array becomes a page, the only one. */
export const pushListTo10: Edit = (result) =>
  Array.isArray(result) ? { configs: result.map((one: unknown) => pushTo10(one)) } : result;

/** 1.0 → 0.3: a page becomes an array. ProtoJSON leaves an empty list out. */
export const pushListTo03: Edit = onObject(({ configs = [] }) =>
  Array.isArray(configs) ? configs.map((one: unknown) => pushTo03(one)) : configs,
);
