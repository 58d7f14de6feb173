import { isObject, type JsonObject } from '#wire';
import { drop, each, editMembers, onObject, type Edit } from './edit-members.ts';
import { isInterrupted, isTerminal, stateName, stateOf } from './task-state.ts';
import { artifactTo03, artifactTo10, messageTo03, messageTo10, withDefaults } from './translate-message.ts';

const statusTo10: Edit = onObject((status) =>
  editMembers(status, { state: (state) => stateName(stateOf(state)), message: messageTo10 }),
);

const statusTo03: Edit = onObject((status) =>
  withDefaults(editMembers(status, { state: stateOf, message: messageTo03 }), { state: 'unknown' }),
);

/** Translates a task from 0.3 to 1.0. */
export const taskTo10: Edit = onObject((task) =>
  editMembers(task, { kind: drop, status: statusTo10, artifacts: each(artifactTo10), history: each(messageTo10) }),
);

/** Translates a task from 1.0 to 0.3, which requires a context and a status. */
export const taskTo03: Edit = onObject((task) => ({
  kind: 'task',
  ...withDefaults(
    editMembers(task, { kind: drop, status: statusTo03, artifacts: each(artifactTo03), history: each(messageTo03) }),
    {
      contextId: '',
      status: { state: 'unknown' },
    },
  ),
}));

/** Translates a status update from 0.3 to 1.0. 1.0 has no `final`: the state and the end of the stream replace it. */
export const statusUpdateTo10: Edit = onObject((update) =>
  editMembers(update, { kind: drop, final: drop, status: statusTo10 }),
);

/**
 * Translates a status update from 1.0 to 0.3. Clients of 0.3 read `final` as the end of the stream. 1.0 ends a stream
 * at a terminal and at an interrupted state (sections 3.1.2 and 11.7).
 */
export const statusUpdateTo03: Edit = onObject((update) => ({
  kind: 'status-update',
  ...withDefaults(editMembers(update, { kind: drop, final: drop, status: statusTo03 }), {
    contextId: '',
    status: { state: 'unknown' },
  }),
  final: endsStream(update),
}));

function endsStream({ status }: JsonObject): boolean {
  const state = stateOf(isObject(status) ? status['state'] : undefined);
  return isTerminal(state) || isInterrupted(state);
}

export const artifactUpdateTo10: Edit = onObject((update) =>
  editMembers(update, { kind: drop, artifact: artifactTo10 }),
);

export const artifactUpdateTo03: Edit = onObject((update) => ({
  kind: 'artifact-update',
  ...withDefaults(editMembers(update, { kind: drop, artifact: artifactTo03 }), { contextId: '' }),
}));
