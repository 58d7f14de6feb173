import type { JsonObject } from '#wire';
import { drop, each, editMembers, onObject, type Edit } from './edit-members.ts';
import { partTo03, partTo10 } from './translate-part.ts';

const ROLES_TO_10: ReadonlyMap<unknown, string> = new Map([
  ['user', 'ROLE_USER'],
  ['agent', 'ROLE_AGENT'],
]);

/**
 * Roles of 1.0 by name and by number, because ProtoJSON allows both. 0.3 has no unspecified role, so it becomes the
 * agent's.
 */
const ROLES_TO_03: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  ['ROLE_USER', 'user'],
  [1, 'user'],
  ['ROLE_AGENT', 'agent'],
  [2, 'agent'],
  ['ROLE_UNSPECIFIED', 'agent'],
  [0, 'agent'],
]);

/** An unknown role stays unchanged. */
export const roleTo10: Edit = (role) => ROLES_TO_10.get(role) ?? role;
export const roleTo03: Edit = (role) => ROLES_TO_03.get(role) ?? role;

/** Translates a message from 0.3 to 1.0, in any place: in parameters, in a history, in a status, as a result. */
export const messageTo10: Edit = onObject((message) =>
  editMembers(message, { kind: drop, role: roleTo10, parts: each(partTo10) }),
);

/** Translates a message from 1.0 to 0.3. ProtoJSON leaves out empty members, but 0.3 requires `role` and `parts`. */
export const messageTo03: Edit = onObject((message) => ({
  kind: 'message',
  ...withDefaults(editMembers(message, { kind: drop, role: roleTo03, parts: each(partTo03) }), {
    role: 'agent',
    parts: [],
  }),
}));

export const artifactTo10: Edit = onObject((artifact) => editMembers(artifact, { parts: each(partTo10) }));

export const artifactTo03: Edit = onObject((artifact) =>
  withDefaults(editMembers(artifact, { parts: each(partTo03) }), { parts: [] }),
);

/**
 * Adds members that the target version requires and the source may leave out. They come last, so that the order of the
 * other members stays.
 */
export function withDefaults(object: JsonObject, defaults: JsonObject): JsonObject {
  const missing = Object.entries(defaults).filter(([name]) => !Object.hasOwn(object, name));
  return missing.length === 0 ? object : { ...object, ...Object.fromEntries(missing) };
}
